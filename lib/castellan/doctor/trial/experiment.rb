# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Tries the fixes of findings together: runs the work without them, then with them, and compares.
      #
      #   Experiment.new(findings) { application.call(env) }.call   # => Trial
      #
      # The first run of each kind warms up; of the others the fastest counts, and their spread is the noise.
      # Places that differ between runs without the fix are not compared.
      class Experiment
        # A fix with fewer queries may cost this much more, relative and absolute.
        MORE = 1.25
        MORE_OBJECTS = 5_000
        MORE_NS = 5_000_000
        # Faster runs are repeated once more.
        QUICK_NS = 300_000_000
        EVENT = "start_processing.action_controller"
        SAFE = %w[GET HEAD].freeze
        private_constant :MORE, :MORE_OBJECTS, :MORE_NS, :QUICK_NS, :EVENT, :SAFE

        # @param findings [Array<Finding>]
        # @yield the work
        def initialize(findings, &work)
          @findings = findings
          @work = work
        end

        # @return [Trial]
        def call
          reason = untriable
          reason ? trial(reason: reason) : unfixed
        end

        private

        # @return [String, nil] reason why a fix cannot be tried without editing the source
        def untriable
          return "CASTELLAN=off is set, so that no query is seen" if Castellan.off?

          without = @findings.find { |finding| finding.preload.nil? }
          return nameless unless without
          return "there is no fix to try: #{without.fix_refused || "the finding has none"}" unless without.fix

          "the line that asks must be rewritten for it, which a trial does not"
        end

        # Classes are looked up by name, so an anonymous class cannot be tried.
        def nameless
          name = @findings.map(&:parent_model).find { |model| !Object.const_defined?(model.to_s) }
          "there is no class #{name}" if name
        rescue NameError
          "the class of the records that were loaded has no name"
        end

        def unfixed
          first = nil
          writing = verbs { first = run }.find { |verb| !SAFE.include?(verb) }
          return trial(reason: "the work answers a #{writing}, and only GET and HEAD are tried") if writing

          before = again(first)
          masked = first.outcome.differences(before.first.outcome)
          injection = Injection.new(@findings, before.first.loads)
          reason = incomparable(before.first, masked, injection)
          reason ? trial(before: fastest(before), masked: masked, reason: reason) : fixed(before, masked, injection)
        end

        # Collects the verbs of Rails requests in the block, so that requests that write are not repeated.
        def verbs(&block)
          return [].tap { block.call } unless defined?(ActiveSupport::Notifications)

          verbs = []
          ActiveSupport::Notifications.subscribed(->(*, payload) { verbs << payload[:method].to_s }, EVENT) { block.call }
          verbs.uniq
        end

        def run(injection = nil) = Run.of(@findings, injection, &@work)
        def again(warm, injection = nil) = Array.new(warm.measurement.duration_ns < QUICK_NS ? 2 : 1) { run(injection) }
        def fastest(runs) = runs.map(&:measurement).min_by(&:duration_ns)

        def incomparable(before, masked, injection)
          if before.asked < 2
            "what was found is not repeated when the work runs again; was something kept meanwhile, or asked by another thread?"
          elsif masked.any? { |place| place == Outcome::WHOLE || place.start_with?("status") }
            "two runs without the fix answer differently as a whole, so nothing says whether the fix changes the answer"
          elsif (lost = injection.lost(@findings))
            "nothing was loaded at #{lost.parent_location}; is this the work that the finding is of?"
          end
        end

        def fixed(before, masked, injection)
          warm = run(injection)
          after = again(warm, injection)
          differences = [warm, *after].flat_map { |one| before.first.outcome.differences(one.outcome, masked: masked) }.uniq
          trial(before: fastest(before), after: fastest(after), same: differences.empty?, masked: masked, noise_ns: noise(before, after),
                **judged(before, after, differences))
        rescue ScriptError, StandardError => error
          trial(before: fastest(before), same: false, masked: masked, reason: failure(error))
        end

        def noise(*kinds)
          kinds.map { |runs| runs.map { |run| run.measurement.duration_ns }.minmax.reduce(:-).abs }.max
        end

        def failure(error)
          "with the fix the work fails: #{error.class}: #{error.message.to_s.scrub.lines.first.to_s.strip}"
        end

        def judged(before, after, differences)
          objection = objection(fastest(before), fastest(after))
          return { reason: objection } if differences.empty?

          reordered = objection.nil? && after.all? { |run| before.first.outcome.reordered?(run.outcome) }
          { reason: "the answer differs at #{differences.first(3).join(", ")}", reordered: reordered }
        end

        def objection(before, after)
          return "there are no fewer queries" if after.queries >= before.queries

          "there are fewer queries, but they take longer and make more objects" if heavier?(before, after)
        end

        # Requires both, because times scatter; ignores small differences, because a preload of few records
        # may cost more than it saves.
        def heavier?(before, after)
          more?(before.allocated_objects, after.allocated_objects, MORE_OBJECTS) && more?(before.duration_ns, after.duration_ns, MORE_NS)
        end

        def more?(before, after, least) = after > before * MORE && after > before + least

        def trial(**fields) = Trial.new(findings: @findings, **fields)
      end
    end
  end
end
