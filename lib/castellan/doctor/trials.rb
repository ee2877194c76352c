# frozen_string_literal: true

module Castellan
  module Doctor
    # Tries the fixes of an examination's findings on its request: each fix alone, and all together.
    #
    #   trials = Trials.of(application, request, examination.findings)
    #   trials[examination.findings.first].accepted?   # => true
    #   trials[:together]&.to_s                        # => "290 → 49 queries, …"; nil if there is only one fix
    #
    # Findings with the same fix share a trial. Each trial sends four to six requests. Starts with the longest
    # total time.
    class Trials
      # @return [Hash{Finding, Symbol => Trial}] by finding that has a fix, and `:together`
      def self.of(application, request, findings, progress: Progress.new)
        groups = Profile::Page::FindingGroup.all(findings).select(&:fix).map(&:findings)
        new(groups, request, progress) { Answer.to(application, request.env) }.call
      end

      # @param groups [Array<Array<Finding>>] findings with a fix
      # @yield sends one request
      def initialize(groups, request, progress, &work)
        @groups = groups
        @request = request
        @progress = progress
        @work = work
      end

      # @return [Hash{Finding, Symbol => Trial}]
      def call
        together = try_together(@groups.select { |group| group.all?(&:preload) })
        alone = @groups.each.with_index(1).to_h { |group, number| [group, try("fix #{number} of #{@groups.size}", group)] }
        together = try_together(@groups.select { |group| alone[group].accepted? }) if together && !together.accepted?
        trials = alone.flat_map { |group, trial| group.map { |finding| [finding, trial] } }.to_h
        together ? trials.merge(together: together) : trials
      end

      private

      def try_together(groups) = (try("all fixes together", groups.flatten) if groups.size > 1)

      def try(text, findings)
        @progress.step = "#{@request}: trying #{text}"
        @progress.within { Doctor.try(*findings, &@work) } || Trial.new(findings: findings, reason: @progress.reached)
      end
    end
  end
end
