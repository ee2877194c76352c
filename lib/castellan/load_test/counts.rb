# frozen_string_literal: true

module Castellan
  module LoadTest
    # What one client counted; added up at the end, so that clients never wait for each other.
    #
    #   counts = Counts.new
    #   counts.success(1_200_000, 145_000)
    #   counts.failure("connection refused")
    #   counts.attempts # => 2
    class Counts
      # @return [Histogram] of the successful requests, in nanoseconds
      attr_reader :histogram
      # @return [Integer] answers that came whole; of these, those with an expected status; and everything else
      attr_reader :transactions, :successful, :failed
      # @return [Integer] body bytes, connections
      attr_reader :bytes, :connections
      # @return [Hash{String => Integer}] why requests failed, and how often
      attr_reader :reasons

      def initialize
        @histogram = Histogram.new
        @transactions = @successful = @failed = @bytes = @connections = 0
        @reasons = Hash.new(0)
      end

      # @param duration_ns [Integer]
      # @param bytes [Integer] of the body
      def success(duration_ns, bytes)
        @transactions += 1
        @successful += 1
        @bytes += bytes
        @histogram.record(duration_ns)
      end

      # @param reason [String]
      # @param bytes [Integer] of the body, as far as it came
      # @param answered [Boolean] whether the answer came whole, with a status that was not expected
      def failure(reason, bytes: 0, answered: false)
        @transactions += 1 if answered
        @failed += 1
        @bytes += bytes
        @reasons[reason] += 1
      end

      def connected(times)
        @connections += times
      end

      # @return [Integer]
      def attempts = successful + failed

      # @param other [Counts] added to this one
      def merge(other)
        @histogram.merge(other.histogram)
        @transactions += other.transactions
        @successful += other.successful
        @failed += other.failed
        @bytes += other.bytes
        @connections += other.connections
        @reasons.update(other.reasons) { |_, mine, theirs| mine + theirs }
        self
      end
    end
  end
end
