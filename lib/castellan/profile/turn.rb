# frozen_string_literal: true

module Castellan
  module Profile
    # One at a time: a profile that samples, or that counts memory, has the whole process to itself, so that two are never mixed.
    #
    #   TURN.take(wait: 2.0)   # => 0, the nanoseconds that it waited, or nil when another has it for longer
    #   TURN.give
    #
    # May be given back by another thread than took it (a body can be sent elsewhere). A process that is forked meanwhile starts free.
    class Turn
      def initialize
        @lock = Mutex.new
        @free = ConditionVariable.new
        @holder = @thread = nil
      end

      # @return [Boolean] whether the thread that asks has it already, so that to wait would be in vain
      def own? = held? && @thread == Thread.current && Fiber.scheduler.nil?

      # @param wait [Numeric] seconds
      # @return [Integer, nil] how long it waited, 0 when it was free; nil: it is not the caller's
      def take(wait:)
        @lock.synchronize do
          waited_ns = held? ? wait_until_free(wait) : 0
          @holder, @thread = Process.pid, Thread.current if waited_ns
          waited_ns
        end
      end

      # Ends the caller's turn.
      def give
        @lock.synchronize do
          @holder = @thread = nil
          @free.signal
        end
      end

      private

      def wait_until_free(seconds)
        started_ns = Clock.monotonic_ns
        while held?
          left_ns = (seconds * 1_000_000_000) - (Clock.monotonic_ns - started_ns)
          return unless left_ns.positive?

          @free.wait(@lock, left_ns / 1e9)
        end
        [Clock.monotonic_ns - started_ns, 1].max
      end

      def held? = @holder == Process.pid
    end
  end
end
