# frozen_string_literal: true

module Castellan
  module LoadTest
    # Limits a load test by time, repetitions, requests and failures. All clients share it.
    #
    #   budget = Budget.new(seconds: 5, repetitions: nil, max_requests: 10_000)
    #   budget.start
    #   budget.take(counts) # => true: the client may send a request, which is counted
    #
    # Thread-safe; signal handlers may call {#stop}.
    class Budget
      MAX_FAILURES = 1_024 # like siege, to not flood a server that refuses connections

      def initialize(seconds:, repetitions:, max_requests:)
        @seconds = seconds
        @repetitions = repetitions
        @left = max_requests
        @failures_left = MAX_FAILURES
        @lock = Mutex.new
        @stopped = false
      end

      def start
        @deadline = @seconds && (Clock.monotonic_ns + (@seconds * 1_000_000_000))
      end

      # @param counts [Counts] of the calling client
      # @return [Boolean] whether the client may send another request
      def take(counts)
        return false if @stopped || given_up? || late? || (@repetitions && counts.attempts >= @repetitions)

        @lock.synchronize { (@left -= 1) >= 0 }
      end

      def failure
        @lock.synchronize { @failures_left -= 1 }
      end

      def stop
        @stopped = true
      end

      def stopped? = @stopped
      def given_up? = @failures_left <= 0

      private

      def late? = @deadline && Clock.monotonic_ns >= @deadline
    end
  end
end
