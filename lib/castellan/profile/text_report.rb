# frozen_string_literal: true

module Castellan
  module Profile
    # Formats a result for a terminal: time by part, queries grouped by shape, findings with fixes, memory.
    #
    #   puts TextReport.new(result).to_s
    class TextReport
      MOST = 10 # of each list

      # @param result [Result]
      def initialize(result)
        @result = result
      end

      # @return [String]
      def to_s
        [heading, *@result.notes.map { |note| "note: #{note}" }, times, objects, *queries, *findings, *memory, *flame].join("\n") << "\n"
      end

      private

      def heading
        asked = [@result.endpoint, @result.status, ("raised #{@result.exception}" if @result.exception)].compact
        [asked.empty? ? "A block" : asked.join(" "), ms(@result.duration_ns)].join(": ")
      end

      def times
        parts = @result.parts
        "SQL #{ms(parts[:sql_ns])} in #{count(@result.totals[:queries], "query", "queries")}#{cached}, " \
          "rendering #{ms(parts[:render_ns])}, caches #{ms(parts[:cache_ns])}, the rest #{ms(parts[:outside_ns])}; " \
          "of all this #{ms(parts[:gc_ns])} collecting garbage"
      end

      def cached
        number = @result.totals[:cached_queries]
        number.zero? ? "" : " (and #{number} that the query cache answered)"
      end

      def objects
        figures = @result.objects
        text = "#{count(figures[:count], "object", "objects")} allocated"
        text << " by the process" if figures[:scope] == "process"
        text << " and #{count(figures[:overlapping], "other request", "other requests")}" if figures[:overlapping].positive?
        text
      end

      def queries
        groups = @result.queries.group_by { |query| [query[:fingerprint], query[:frames].first] }.values
        groups = groups.sort_by { |group| -group.sum { |query| query[:duration_ns] } }
        groups.first(MOST).map { |group| line(group) } + more(groups)
      end

      def line(group)
        first = group.first
        format("%5d × %9s  %s%s", group.size, ms(group.sum { |query| query[:duration_ns] }), first[:sql][0, 120],
               ("\n                    #{first[:frames].first}" if first[:frames].any?))
      end

      def findings = @result.findings.map { |finding| "finding: #{Finding.new(**finding)}" }

      def memory
        return [] unless (memory = @result.memory)

        ["#{memory[:total_allocated_bytes]} bytes in #{memory[:total_allocated]} objects allocated, " \
         "#{memory[:total_retained_bytes]} in #{memory[:total_retained]} retained"] +
          memory[:by_line].first(MOST).map do |row|
            format("%12d bytes %8d objects  %s", row[:allocated_bytes], row[:allocated], row[:name])
          end
      end

      # Samples by innermost frame (self time).
      def flame
        profile = @result.flame&.dig("profiles", 0) or return []

        weights = Hash.new(0)
        profile["samples"].zip(profile["weights"]) { |stack, weight| weights[stack.last] += weight if stack.any? }
        frames = @result.flame.dig("shared", "frames")
        weights.sort_by { |_, weight| -weight }.first(MOST).map do |index, weight|
          format("%6.1f %%  %s", weight * 100.0 / profile["endValue"], frames[index].values_at("name", "file", "line").compact.join(":"))
        end
      end

      def more(groups) = groups.size > MOST ? ["      and #{groups.size - MOST} more shapes"] : []

      def ms(duration_ns) = format("%.1f ms", duration_ns / 1e6)

      def count(number, one, many) = "#{number} #{number == 1 ? one : many}"
    end
  end
end
