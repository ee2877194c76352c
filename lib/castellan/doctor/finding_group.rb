# frozen_string_literal: true

module Castellan
  module Doctor
    # Groups findings that share a fix and formats them as lines of the report.
    #
    #   FindingGroup.all(findings).each.with_index(1) { |group, number| puts group.lines(number) }
    #
    # The longest total time comes first. Statements are truncated; `Report#to_h` has the full text.
    class FindingGroup
      WIDTH = 100
      private_constant :WIDTH

      # @param findings [Array<Finding>]
      # @return [Array<FindingGroup>]
      def self.all(findings)
        findings.group_by { |finding| [finding.kind, finding.fix || finding] }.values
                .map { |same| new(same) }.sort_by { |group| -group.total_ns }
      end

      # @param findings [Array<Finding>] of one kind and with one fix
      def initialize(findings)
        @findings = findings.sort_by { |finding| -finding.total_ns.to_i }
      end

      # @return [Array<Finding>] longest total time first
      attr_reader :findings

      # @return [Integer]
      def total_ns = @findings.sum { |finding| finding.total_ns.to_i }

      # @return [Integer] number of statements
      def count = @findings.sum(&:count)

      # @return [String, nil]
      def fix = first.fix

      # @return [String, nil] reason why there is no fix
      def fix_refused = first.fix_refused

      # @return [Boolean] see {Finding#repeats?}
      def repeats? = first.repeats?

      # @param trial [Trial, nil] trial of the group's fix
      # @return [Array<String>]
      def lines(number, trial = nil)
        ["#{number}. #{Figures.counted(count, "query")}, #{cost}: #{Profile::Page::FindingGroup.words(first.kind)}",
         *loads, *by_place, labelled("fix", fix || "none: #{fix_refused}"),
         *(labelled("tried", trial.to_s) if trial)]
      end

      private

      def first = @findings.first

      # The figures of :cached_repeat are the most that the answers of the query cache cost.
      def cost
        return Figures.duration(total_ns) unless first.objects

        "at most #{Figures.duration(total_ns)} and #{Figures.counted(@findings.sum(&:objects), "object")}"
      end

      def loads
        known = @findings.select(&:parent_location).map { |finding| [finding.parent_count, finding.parent_location] }
        known.uniq.map { |count, place| labelled("loaded", "#{count ? Figures.count(count) : "the"} records at #{place}") }
      end

      def by_place
        @findings.group_by(&:location).flat_map do |place, same|
          source = same.first.source&.strip
          [labelled("asked", "at #{place || "an unknown place"}"), *("           #{cut(source)}" if source && !source.empty?),
           *same.map { |finding| "           #{Figures.count(finding.count)} × #{cut(finding.fingerprint.to_s)}" }]
        end
      end

      def labelled(name, text) = format("   %-7s %s", name, text)

      def cut(text) = text.size > WIDTH ? "#{text[0, WIDTH - 1]}…" : text
    end
  end
end
