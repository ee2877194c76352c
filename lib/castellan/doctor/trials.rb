# frozen_string_literal: true

module Castellan
  module Doctor
    # Tries the fixes of an examination's findings on its request, one after the other; what one change mends is tried together.
    #
    #   trials = Trials.of(application, request, examination.findings)
    #   trials[examination.findings.first].accepted?   # => true
    #
    # Each takes four requests, so only those that take longest are tried.
    module Trials
      MOST = 5

      module_function

      # @param application [#call]
      # @param request [Request]
      # @param findings [Array<Finding>]
      # @return [Hash{Finding => Trial}] those that have a fix
      def of(application, request, findings)
        groups = FindingGroup.all(findings).select(&:fix)
        groups.each_with_index.with_object({}) do |(group, index), trials|
          trial = index < MOST ? Doctor.try(*group.findings) { Answer.to(application, request.env) } : left_out(group)
          group.findings.each { |finding| trials[finding] = trial }
        end
      end

      def left_out(group) = Trial.new(findings: group.findings, reason: "only the #{MOST} that take longest are")
      private_class_method :left_out
    end
  end
end
