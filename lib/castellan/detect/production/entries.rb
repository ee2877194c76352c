# frozen_string_literal: true

module Castellan
  module Detect
    class Production
      # What repeats, added up by endpoint, fix site and association. Keeps those seen last, at most MOST.
      #
      #   entries = Entries.new
      #   entries.add("GET users#index", finding)   # => true, it is new
      #   entries.all.first.times                   # => 1
      #
      # May be asked by several threads; what it gives out is a copy.
      class Entries
        MOST = 200

        # One line of what was added up. `times` is in how many requests it was seen, `queries` and `total_ns` are sums over them.
        Entry = Struct.new(:endpoint, :finding, :per_request, :ns_per_request, :first_seen_at, :last_seen_at, keyword_init: true) do
          def times = per_request.count
          def queries = per_request.sum
          def total_ns = ns_per_request.sum

          def initialize_copy(other)
            super
            self.per_request = per_request.dup
            self.ns_per_request = ns_per_request.dup
          end

          # @return [String] one line for a log
          def to_s
            queries, ms = per_request.to_h, ns_per_request.to_h.transform_values { |ns| (ns / 1e6).round(1) }
            "#{endpoint}: #{finding.kind} in #{times} requests, #{figures("queries", queries)}, #{figures("ms", ms)}, " \
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
          @entries = {}
          @lock = Mutex.new
        end

        # @param count [Integer] its statements in this request
        # @return [Boolean] whether it was not known
        def add(endpoint, finding, count = finding.count, total_ns = finding.total_ns.to_i)
          key = [endpoint, Report.fix_site(finding), finding.association || finding.fingerprint, finding.repeats? || finding.kind]
          @lock.synchronize do
            known = @entries.delete(key)
            count_in(@entries[key] = known || begin_entry(endpoint), finding, count, total_ns)
            @entries.shift if @entries.size > MOST
            known.nil?
          end
        end

        # @return [Array<Entry>] what took the most time first
        def all = @lock.synchronize { @entries.values.map(&:dup) }.sort_by { |entry| -entry.total_ns }

        private

        def begin_entry(endpoint)
          Entry.new(endpoint: endpoint, per_request: Distribution.new, ns_per_request: Distribution.new, first_seen_at: Clock.now)
        end

        def count_in(entry, finding, count, total_ns)
          entry.finding = finding
          entry.per_request.add(count)
          entry.ns_per_request.add(total_ns)
          entry.last_seen_at = Clock.now
        end
      end
    end
  end
end
