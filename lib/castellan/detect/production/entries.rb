# frozen_string_literal: true

module Castellan
  module Detect
    class Production
      # Sums up findings by endpoint, line to change and association. Keeps the MOST recently seen ones.
      #
      #   entries = Entries.new
      #   entries.add("GET users#index", finding)   # => true if it is new
      #   entries.all.first.times                   # => 1
      #
      # Thread-safe; {#all} returns copies.
      class Entries
        MOST = 200
        KEPT = 200

        # The figures of a finding: sum, count and maximum of all requests, and the values of the last KEPT.
        Recent = Struct.new(:values, :count, :sum, :max) do
          def add(value)
            values[count % KEPT] = value
            self.count += 1
            self.sum += value
            self.max = value if value > max
          end

          # @param share [Numeric] above 0 and up to 100
          # @return [Integer] the nearest-rank percentile of the kept values; 0 without values
          def percentile(share) = values.empty? ? 0 : values.sort[[(values.size * share / 100.0).ceil, 1].max - 1]

          # @return [Hash{Symbol => Integer}] percentiles of the kept values, and the maximum of all values
          def to_h = { p50: percentile(50), p95: percentile(95), p99: percentile(99), max: max }
        end

        # A line of the report.
        # `times` is the number of requests with the finding; `queries` and `total_ns` are sums.
        Entry = Struct.new(:endpoint, :finding, :per_request, :ns_per_request, :first_seen_at, :last_seen_at, keyword_init: true) do
          def times = per_request.count
          def queries = per_request.sum
          def total_ns = ns_per_request.sum

          def initialize_copy(other)
            super
            %i[per_request ns_per_request].each { |name| self[name] = self[name].dup.tap { |figures| figures.values = figures.values.dup } }
          end

          # @return [String] one line for a log
          def to_s
            ms = ns_per_request.to_h.transform_values { |ns| (ns / 1e6).round(1) }
            "#{endpoint}: #{finding.kind} in #{times} requests, #{figures("queries", per_request.to_h)}, #{figures("ms", ms)}, " \
              "last at #{last_seen_at.utc.strftime("%FT%TZ")}; #{finding}"
          end

          # @return [Hash] for JSON
          def to_h
            { endpoint: endpoint, times: times, queries: queries, total_ns: total_ns, queries_per_request: per_request.to_h,
              ns_per_request: ns_per_request.to_h, first_seen_at: first_seen_at.utc.strftime("%FT%TZ"),
              last_seen_at: last_seen_at.utc.strftime("%FT%TZ"), finding: finding.to_h.compact }
          end

          private

          def figures(unit, values) = "#{unit} p50 #{values[:p50]} p95 #{values[:p95]} p99 #{values[:p99]}"
        end

        def initialize
          @entries = BoundedCache.new(limit: 2 * MOST)
          @lock = Mutex.new
        end

        # @param endpoint [String]
        # @param finding [Finding] of one request; a finding that combines many requests counts as one query
        # @return [Boolean] whether the finding is new
        def add(endpoint, finding)
          key = [endpoint, Report.fix_site(finding), finding.association || finding.fingerprint, finding.repeats? || finding.kind]
          @lock.synchronize do
            entry = @entries.fetch(key) do
              Entry.new(endpoint: endpoint, per_request: Recent.new([], 0, 0, 0), ns_per_request: Recent.new([], 0, 0, 0),
                        first_seen_at: Clock.now)
            end
            entry.finding = finding
            entry.per_request.add(finding.of_many_requests? ? 1 : finding.count)
            entry.ns_per_request.add(finding.total_ns.to_i)
            entry.last_seen_at = Clock.now
            entry.times == 1
          end
        end

        # @return [Array<Entry>] by descending total time
        def all = @lock.synchronize { @entries.values.last(MOST).map(&:dup) }.sort_by { |entry| -entry.total_ns }
      end
    end
  end
end
