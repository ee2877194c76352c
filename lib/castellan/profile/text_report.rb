# frozen_string_literal: true

module Castellan
  module Profile
    # Formats a result for a terminal: time by part, queries by shape, findings with fixes, memory.
    #
    #   puts TextReport.new(result).to_s
    class TextReport
      include Figures

      MOST = 10 # of each list
      MOST_LINES = 3 # of each statement

      # @param result [Result]
      def initialize(result)
        @result = result
      end

      def to_s
        [heading, *@result.notes.map { |note| "note: #{note}" }, times, objects, *queries, *findings, *memory, *flame].join("\n") << "\n"
      end

      private

      def heading
        asked = [@result.endpoint, @result.status, ("raised #{@result.exception}" if @result.exception)].compact
        [asked.empty? ? "A block" : asked.join(" "), duration(@result.duration_ns)].join(": ")
      end

      def times
        sql, render, cache, outside, gc = %i[sql_ns render_ns cache_ns outside_ns gc_ns].map { |part| duration(@result.parts[part]) }
        cached = @result.totals[:cached_queries]
        cached = cached.zero? ? "" : " (and #{cached} that the query cache answered)"
        "SQL #{sql} in #{counted(@result.totals[:queries], "query")}#{cached}, rendering #{render}, caches #{cache}, " \
          "the rest #{outside}; of all this #{gc} collecting garbage"
      end

      def objects
        count, scope, overlapping = @result.objects.values_at(:count, :scope, :overlapping)
        "#{counted(count, "object")} allocated#{" by the process" if scope == "process"}" \
          "#{" and #{counted(overlapping, "other request")}" if overlapping.positive?}"
      end

      def queries
        groups = Page::QueryGroup.all(@result.queries)
        rest = groups.size - MOST
        groups.first(MOST).flat_map { |group| statement(group) } + (rest.positive? ? ["      and #{rest} more shapes"] : [])
      end

      def statement(group)
        lines = group.lines.filter_map(&:first).first(MOST_LINES)
        [format("%5d × %9s  %s", group.count, duration(group.total_ns), group.sql[0, 120]), *lines.map { |line| "#{" " * 20}#{line}" }]
      end

      def findings = @result.findings.map { |finding| "finding: #{Finding.new(**finding, kind: finding[:kind].to_sym)}" }

      def memory
        return [] unless (memory = @result.memory)

        ["#{bytes(memory[:total_allocated_bytes])} in #{counted(memory[:total_allocated], "object")} allocated, " \
         "#{bytes(memory[:total_retained_bytes])} in #{count(memory[:total_retained])} retained"] +
          memory[:by_line].first(MOST).map do |row|
            format("%10s %9s objects  %s", bytes(row[:allocated_bytes]), count(row[:allocated]), row[:name])
          end
      end

      # The samples by innermost frame (self time).
      def flame
        profile = @result.flame&.dig("profiles", 0) or return []

        weights = Hash.new(0)
        profile["samples"].zip(profile["weights"]) { |stack, weight| weights[stack.last] += weight if stack.any? }
        frames = @result.flame.dig("shared", "frames")
        weights.sort_by { |_, weight| -weight }.first(MOST).map do |index, weight|
          format("%6.1f %%  %s", weight * 100.0 / profile["endValue"], frames[index].values_at("name", "file", "line").compact.join(":"))
        end
      end
    end
  end
end
