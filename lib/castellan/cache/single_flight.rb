# frozen_string_literal: true

require_relative "../uninterrupted"

module Castellan
  module Cache
    # Lets one thread, or one fiber of a scheduler, compute a value that several request at the same time.
    #
    #   flight = SingleFlight.new(timeout: 10)
    #   flight.run("users") { render }   # in eight threads at once: renders once, returns the bytes to all
    #
    # If the computing thread fails or takes longer than the timeout (seconds), the waiting threads compute
    # themselves. So do a thread that requests the key it is computing, and a forked process, which lacks the
    # computing thread.
    class SingleFlight
      # One running computation.
      class Flight
        attr_reader :owner

        def initialize(mutex)
          @mutex = mutex
          @landed = ConditionVariable.new
          @owner = Thread.current
          @fiber = Fiber.current
        end

        # @return [Boolean] whether the current fiber computes it
        def mine? = @fiber.equal?(Fiber.current)

        # @return [Boolean] whether its thread runs in this process
        def running?
          @owner.alive?
        end

        # Call it with the mutex held.
        def land(answer)
          @done = true
          @answer = answer
          @landed.broadcast
        end

        # Call it with the mutex held.
        # @return [Object, nil] nil after a failure or the timeout
        def wait(timeout)
          deadline = Clock.monotonic_ns + (timeout * 1_000_000_000).to_i
          until @done || (left = deadline - Clock.monotonic_ns) <= 0
            @landed.wait(@mutex, left / 1_000_000_000.0)
          end
          @answer
        end
      end
      private_constant :Flight

      # @param timeout [Numeric] seconds to wait for another thread
      def initialize(timeout: 10)
        @timeout = timeout
        @mutex = Mutex.new
        @flights = {}
      end

      # @param key [String]
      # @yieldparam first [Boolean] false for a thread that waited without getting a value
      # @yieldreturn [Object, nil] the value to share; nil is not shared
      # @return [Object, nil] the value of this thread's block or of another's
      def run(key)
        own = Flight.new(@mutex)
        flight = board(key, own)
        return wait(flight) || yield(false) unless flight.equal?(own)

        answer = yield(true)
      ensure
        land(key, own, answer) if own # an interrupt may arrive before `flight` is assigned
      end

      # @param key [String]
      # @return [Boolean] whether a thread of this process is computing the key
      def running?(key)
        synchronize { @flights[key]&.running? } || false
      end

      # @param key [String]
      # @return [Boolean] whether this fiber is computing the key
      def mine?(key)
        synchronize { @flights[key]&.mine? } || false
      end

      private

      # Without interrupts: a flight that has not landed, such as after a second Timeout at its end, would delay each
      # request of its key for as long as its thread lives.
      def synchronize(&)
        Uninterrupted.call { @mutex.synchronize(&) }
      end

      # @return [Flight] the one that is running, else `own`
      def board(key, own)
        synchronize do
          flight = @flights[key]
          flight&.running? ? flight : @flights[key] = own
        end
      end

      def land(key, own, answer)
        synchronize do
          @flights.delete(key) if @flights[key].equal?(own)
          own.land(answer)
        end
      end

      # Without a scheduler, a fiber that waits would stop the fiber that computes.
      def wait(flight)
        return if flight.mine? || (flight.owner == Thread.current && !Fiber.current_scheduler)

        @mutex.synchronize { flight.wait(@timeout) }
      end
    end
  end
end
