# frozen_string_literal: true

module Castellan
  module LoadTest
    # Counts the results of one client. Merged at the end, so that clients do not wait for each other.
    #
    #   counts = Counts.new
    #   counts.success(1_200_000, 145_000)
    #   counts.failure("connection refused")
    #   counts.attempts # => 2
    class Counts
      # @return [Array<Integer>] the duration of each successful request in nanoseconds
      attr_reader :durations
      # @return [Integer] complete responses with an unexpected status; all failed attempts, including these
      attr_reader :unexpected, :failed
      # @return [Integer] bytes of the bodies; opened connections
      attr_reader :bytes, :connections
      # @return [Hash{String => Integer}] number of failures by reason
      attr_reader :reasons

      def initialize
        @durations = []
        @unexpected = @failed = @bytes = @connections = 0
        @reasons = Hash.new(0)
      end

      # @param duration_ns [Integer]
      # @param bytes [Integer] size of the body
      def success(duration_ns, bytes)
        @bytes += bytes
        @durations << duration_ns
      end

      # @param reason [String]
      # @param bytes [Integer] received bytes of the body
      # @param answered [Boolean] true for a complete response with an unexpected status
      def failure(reason, bytes: 0, answered: false)
        @unexpected += 1 if answered
        @failed += 1
        @bytes += bytes
        @reasons[reason] += 1
      end

      def connected(times)
        @connections += times
      end

      # @return [Integer] responses with an expected status
      def successful = @durations.size

      # @return [Integer] complete responses
      def transactions = successful + unexpected

      # @return [Integer]
      def attempts = successful + failed

      # @param other [Counts] is added to this one
      def merge(other)
        @durations.concat(other.durations)
        @unexpected += other.unexpected
        @failed += other.failed
        @bytes += other.bytes
        @connections += other.connections
        @reasons.update(other.reasons) { |_, mine, theirs| mine + theirs }
        self
      end
    end
  end
end
