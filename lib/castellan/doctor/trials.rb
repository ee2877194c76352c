# frozen_string_literal: true

module Castellan
  module Doctor
    # Tries the fixes of an examination's findings on its request: all together, and each by itself.
    #
    #   trials = Trials.of(application, request, examination.findings)
    #   trials[examination.findings.first].accepted?   # => true
    #   trials[:together]&.to_s                        # => "290 → 49 queries, …"; nil for a single fix
    #
    # Findings with the same fix are one trial. Each trial takes four to six requests; the longest total time
    # comes first, and no trial starts after BUDGET_NS.
    class Trials
      BUDGET_NS = 60_000_000_000

      # @param application [#call]
      # @param request [Request]
      # @param findings [Array<Finding>]
      # @return [Hash{Finding, Symbol => Trial}] by finding with a fix, and `:together`
      def self.of(application, request, findings)
        new(FindingGroup.all(findings).select(&:fix)) { Answer.to(application, request.env) }.call
      end

      # @param groups [Array<FindingGroup>]
      # @yield sends one request
      def initialize(groups, &work)
        @groups = groups
        @work = work
        @started_ns = Clock.monotonic_ns
      end

      # @return [Hash{Finding, Symbol => Trial}]
      def call
        together = try_together(@groups.select { |group| group.findings.all?(&:preload) })
        alone = @groups.to_h { |group| [group, try(group.findings)] }
        together = try_together(@groups.select { |group| alone[group].accepted? }) if together && !together.accepted?
        trials = alone.each_with_object({}) { |(group, trial), all| group.findings.each { |finding| all[finding] = trial } }
        together ? trials.merge(together: together) : trials
      end

      private

      def try_together(groups) = (try(groups.flat_map(&:findings)) if groups.size > 1)

      def try(findings)
        spent_ns = Clock.monotonic_ns - @started_ns
        return Doctor.try(*findings, &@work) if spent_ns < BUDGET_NS

        Trial.new(findings: findings, reason: "the trials before it took #{spent_ns / 1_000_000_000} s")
      end
    end
  end
end
