# frozen_string_literal: true

module Castellan
  module Cache
    # Lets one thread compute what several ask for at the same time.
    #
    #   flight = SingleFlight.new(timeout: 10)
    #   flight.run("users") { render }   # in eight threads at once: renders once, eight get the bytes
    #
    # When the one fails or is killed, each of the others computes for itself, so that nobody gets another's error; also when
    # it takes longer than the timeout (in seconds), which ends every circle of threads that wait for one another. A thread
    # that asks again for what it is computing computes. So does a process that was forked meanwhile: it has no such thread.
    class SingleFlight
      # One computation that is under way.
      class Flight
        attr_reader :owner

        def initialize(mutex)
          @mutex = mutex
          @landed = ConditionVariable.new
          @owner = Thread.current
        end

        # @return [Boolean] whether its thread is there; a fork takes over none of the others' threads
        def under_way?
          @owner.alive?
        end

        # With the mutex held.
        def land(answer)
          @done = true
          @answer = answer
          @landed.broadcast
        end

        # With the mutex held. @return [Object, nil] nil after a failure or the timeout
        def wait(timeout)
          deadline = Clock.monotonic_ns + (timeout * 1_000_000_000).to_i
          until @done || (left = deadline - Clock.monotonic_ns) <= 0
            @landed.wait(@mutex, left / 1_000_000_000.0)
          end
          @answer
        end
      end
      private_constant :Flight

      # @param timeout [Numeric] seconds that a thread waits for another
      def initialize(timeout: 10)
        @timeout = timeout
        @mutex = Mutex.new
        @flights = {}
      end

      # @param key [String]
      # @yieldreturn what to share; nil is not shared
      def run(key, &block)
        flight, mine = board(key)
        return lead(key, flight, &block) if mine

        wait(flight) || yield
      end

      # @return [Integer] computations under way
      def size
        @mutex.synchronize { @flights.size }
      end

      private

      def board(key)
        @mutex.synchronize do
          flight = @flights[key]
          flight&.under_way? ? [flight, false] : [@flights[key] = Flight.new(@mutex), true]
        end
      end

      def lead(key, flight)
        answer = yield
      ensure
        @mutex.synchronize do
          @flights.delete(key)
          flight.land(answer)
        end
      end

      def wait(flight)
        return if flight.owner == Thread.current

        @mutex.synchronize { flight.wait(@timeout) }
      end
    end
  end
end
