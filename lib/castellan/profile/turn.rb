# frozen_string_literal: true

module Castellan
  module Profile
    # Lock with a timeout: one profile at a time samples or counts memory in a process.
    #
    #   TURN.take(wait: 2.0)   # => nanoseconds that it waited, or nil after the timeout
    #   TURN.give
    #
    # Unlike a Mutex, another thread may release it (a body may be sent by another thread), and a forked
    # process starts with it free.
    class Turn
      def initialize
        @lock = Mutex.new
        @free = ConditionVariable.new
        @holder = @thread = nil
      end

      # @return [Boolean] whether the current thread holds it, so that waiting would deadlock
      def own? = held? && @thread == Thread.current && Fiber.scheduler.nil?

      # @param wait [Numeric] seconds
      # @return [Integer, nil] nanoseconds that it waited, 0 if it was free; nil after the timeout
      def take(wait:)
        @lock.synchronize do
          waited_ns = held? ? wait_until_free(wait) : 0
          @holder, @thread = Process.pid, Thread.current if waited_ns
          waited_ns
        end
      end

      # Releases it.
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
