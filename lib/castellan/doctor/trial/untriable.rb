# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Why a fix cannot be tried without a change of the source.
      #
      #   Untriable.reason([finding])   # => "there is no fix to try: the conditions differ from record to record", or nil
      module Untriable
        WHY = {
          write_loop: "the rows to write at once are known only after the loop, which must be rewritten",
          duplicate: "where to keep the answer is for the source to say",
          unused_eager_load: "that nobody reads it shows over many requests, not in one",
          counter_cache: "it needs a column of its own",
          wide_join: "which records are meant to come along is for the source to say",
          n_plus_one: "the values to ask for at once are collected before the loop, which must be rewritten"
        }.freeze
        JOIN_MODEL = "an association through a join table makes a model of it, which a trial does not"
        private_constant :WHY, :JOIN_MODEL

        module_function

        # @param findings [Array<Finding>]
        # @return [String, nil] nil when it can be tried
        def reason(findings)
          return "CASTELLAN=off is set, so that no query is seen" if Castellan.off?

          findings.each do |finding|
            return "there is no fix to try: #{finding.fix_refused || "the finding has none"}" unless finding.fix
            return untold(finding) unless finding.preload || AtOnce.for?(finding)
          end
          nameless(findings)
        end

        def untold(finding)
          return "the fix leaves something to fill in (…)" if finding.fix.include?("…")
          return JOIN_MODEL if finding.remedy.to_h[:makes] == :join_model

          WHY.fetch(finding.kind, "its fix changes more than what is loaded")
        end
        private_class_method :untold

        # A class without a name cannot be found again.
        def nameless(findings)
          name = findings.map { |finding| model_of(finding) }.find { |model| !Object.const_defined?(model.to_s) }
          "there is no class #{name}" if name
        rescue NameError
          "the class of the records that were loaded has no name"
        end
        private_class_method :nameless

        # A duplicate needs none.
        def model_of(finding) = AtOnce.for?(finding) ? finding.remedy[:of] || "Object" : finding.parent_model
        private_class_method :model_of
      end
    end
  end
end
