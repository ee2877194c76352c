# frozen_string_literal: true

module Castellan
  module LoadTest
    # Reports a load test in siege's terms. Percentiles are in nanoseconds, the duration of the run in seconds.
    # Frozen.
    #
    #   result.rate         # => 163.93, successful requests per second
    #   result.availability # => 100.0, percent of attempts with a complete response and an expected status
    #   puts result.to_text # siege's output, and percentiles
    #
    # Response times are those of successful requests, from sending (including connecting) to the last byte.
    # The transferred bytes do not include response headers.
    class Summary
      PERCENTILES = [50, 95, 99].freeze
      MAX_REASONS = 5
      private_constant :PERCENTILES, :MAX_REASONS

      # @return [Integer]
      attr_reader :clients, :elapsed_ns

      def initialize(request:, clients:, counts:, elapsed_ns:, interrupted: false, given_up: false)
        @request = request
        @clients = clients
        @counts = counts
        @durations = counts.durations.sort.freeze
        @elapsed_ns = elapsed_ns
        @interrupted = interrupted
        @given_up = given_up
        freeze
      end

      # @param other [Summary] of the same request
      # @return [Summary]
      def +(other)
        Summary.new(request: @request, clients: clients, counts: Counts.new.merge(@counts).merge(other.counts),
                    elapsed_ns: elapsed_ns + other.elapsed_ns, interrupted: interrupted? || other.interrupted?,
                    given_up: given_up? || other.given_up?)
      end

      def url = @request.url
      # @return [Integer] complete responses, with any status
      def transactions = @counts.transactions
      # @return [Integer] complete responses with an expected status; {#failed} counts all other attempts
      def successful = @counts.successful
      def failed = @counts.failed
      # @return [Integer] bytes of bodies
      def transferred_bytes = @counts.bytes
      # @return [Hash{String => Integer}] number of failures by reason
      def reasons = @counts.reasons
      # @return [Integer] number of opened connections
      def connections = @counts.connections
      # @return [Boolean] whether {Run#stop} ended the run
      def interrupted? = @interrupted
      # @return [Boolean] whether too many failures ended the run
      def given_up? = @given_up
      # @return [Boolean] true if at least one request succeeded and none failed
      def ok? = successful.positive? && failed.zero?

      # @return [Float] percent
      def availability
        attempts = @counts.attempts
        attempts.zero? ? 0.0 : successful * 100.0 / attempts
      end

      # @return [Float] seconds
      def elapsed = elapsed_ns / 1e9
      # @return [Float] successful requests per second
      def rate = per_second(successful)
      # @return [Float] megabytes (10^6 bytes) per second
      def throughput = per_second(transferred_bytes) / 1e6
      # @return [Float] average number of concurrent requests
      def concurrency = per_second(@durations.sum / 1e9)

      # @param percent [Numeric] above 0, at most 100
      # @return [Integer, nil] nanoseconds, by nearest rank; nil if no request succeeded
      # @raise [ArgumentError] for other percentages
      def percentile(percent)
        raise ArgumentError, "percentile: must be above 0 and at most 100, got #{percent}" unless percent.positive? && percent <= 100

        rank = (percent.rationalize(Rational(1, 1_000_000)) * @durations.size / 100).ceil # 99.9 is inexact
        @durations[rank - 1] if rank.positive?
      end

      # @return [Hash{Symbol => Numeric, nil}] rounded figures
      def to_h
        {
          requests_per_s: rate.round(2), mean_ms: ms(mean_ns), min_ms: ms(@durations.first), max_ms: ms(@durations.last),
          p50_ms: ms(percentile(50)), p95_ms: ms(percentile(95)), p99_ms: ms(percentile(99)),
          availability: availability.round(3), concurrency: concurrency.round(2), transferred_bytes: transferred_bytes
        }
      end

      # @return [String] siege's output, then the percentiles
      def to_text = [heading, *lines.map { |name, value| format("%-26s%s", "#{name}:", value) }, *failures].join("\n")

      protected

      # @return [Counts]
      attr_reader :counts

      private

      def per_second(amount) = elapsed_ns.zero? ? 0.0 : amount / elapsed

      def mean_ns = (@durations.sum.fdiv(@durations.size) if @durations.any?)

      def ms(value_ns) = Figures.milliseconds(value_ns)

      def heading
        "#{"Interrupted; measured so far: " if interrupted?}#{url}, #{Figures.counted(clients, "client")}, " \
          "keep-alive #{@request.keep_alive? ? "on" : "off"}, #{Figures.counted(connections, "connection")}"
      end

      def lines
        {
          "Transactions" => "#{transactions} hits", "Availability" => format("%.2f %%", availability),
          "Elapsed time" => format("%.2f secs", elapsed), "Data transferred" => format("%.2f MB", transferred_bytes / 1e6),
          "Response time" => in_ms(mean_ns), "Transaction rate" => format("%.2f trans/sec", rate),
          "Throughput" => format("%.2f MB/sec", throughput), "Concurrency" => format("%.2f", concurrency),
          "Successful transactions" => successful, "Failed transactions" => failed,
          "Longest transaction" => in_ms(@durations.last), "Shortest transaction" => in_ms(@durations.first)
        }.merge(PERCENTILES.to_h { |percent| ["p#{percent}", in_ms(percentile(percent))] })
      end

      def in_ms(value_ns) = value_ns ? format("%.2f ms", value_ns / 1e6) : "-"

      def failures
        shown = reasons.sort_by { |reason, times| [-times, reason] }
        rest = shown.drop(MAX_REASONS)
        lines = shown.first(MAX_REASONS).map { |reason, times| "  #{times} × #{reason}" }
        lines << "  #{rest.sum(&:last)} × #{rest.size} other reasons" if rest.any?
        return [] if lines.empty?

        ["", given_up? ? "Failed, and given up after #{failed} failures:" : "Failed:", *lines]
      end
    end
  end
end
