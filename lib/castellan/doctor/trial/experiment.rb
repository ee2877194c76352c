# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Tries the fixes of findings together: runs the work without them and with them, and compares.
      #
      #   Experiment.new(findings) { application.call(env) }.call   # => Trial
      #
      # The first run of each kind warms up. Of the other runs the fastest counts, and their spread is the
      # noise. Places that differ between two runs without the fix are not compared.
      class Experiment
        # The cost that a fix with fewer queries may add: relative, and absolute.
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
          @verbs = []
        end

        # @return [Trial]
        def call
          reason = untriable
          return trial(reason: reason) if reason

          first = noting_verbs { run(warm_up: true) }
          return trial(reason: "the work answers a #{unsafe}, and only GET and HEAD are tried") if unsafe

          before = again(first)
          masked = first.outcome.differences(before.first.outcome)
          injection = Injection.new(@findings, before.first.loads)
          reason = incomparable(before.first, masked, injection)
          reason ? trial(before: fastest(before), masked: masked, reason: reason) : fixed(before, masked, injection)
        end

        private

        # @return [String, nil] why the fix cannot be tried without editing the source
        def untriable
          return "CASTELLAN=off is set, so that no query is seen" if Castellan.off?

          without = @findings.find { |finding| finding.preload.nil? || finding.parent_model.nil? } or return
          return "the class of the records that were loaded has no name" if without.preload
          return "there is no fix to try: #{without.fix_refused || "the finding has none"}" unless without.fix

          "the line that queries must be rewritten for it, which a trial does not"
        end

        # Collects the verbs of the requests in the block, because requests that write must not be repeated.
        def noting_verbs(&block)
          return yield unless defined?(ActiveSupport::Notifications)

          ActiveSupport::Notifications.subscribed(->(*, payload) { @verbs << payload[:method].to_s }, EVENT, &block)
        end

        def unsafe = @verbs.find { |verb| !SAFE.include?(verb) }

        def run(injection = nil, warm_up: false)
          MeasuredRun.call(fingerprints: @findings.map(&:fingerprint).uniq, injection: injection,
                           databases: Sandbox.reachable, warm_up: warm_up, &@work)
        end

        def again(warm, injection = nil) = Array.new(warm.measurement.duration_ns < QUICK_NS ? 2 : 1) { run(injection) }

        def fastest(runs) = runs.map(&:measurement).min_by(&:duration_ns)

        def incomparable(before, masked, injection)
          if before.repeated < 2
            "what was found is not repeated when the work runs again; was something kept meanwhile, or queried by another thread?"
          elsif masked.any? { |place| place == Outcome::WHOLE || place.start_with?("status") }
            "two runs without the fix return different responses, so a trial cannot show whether the fix changes them"
          elsif (lost = injection.lost(@findings))
            "nothing was loaded at #{lost.parent_location}; is this the work that the finding is of?"
          end
        end

        def fixed(before, masked, injection)
          warm = run(injection, warm_up: true)
          after = again(warm, injection)
          first = before.first.outcome
          differences = [warm, *after].flat_map { |run| first.differences(run.outcome, masked: masked) }.uniq
          objection = objection(fastest(before), fastest(after))
          reordered = differences.any? && objection.nil? && after.all? { |run| first.reordered?(run.outcome) }
          trial(before: fastest(before), after: fastest(after), same: differences.empty?, masked: masked,
                noise_ns: [before, after].map { |runs| spread_ns(runs) }.max, reordered: reordered,
                reason: differences.any? ? "the answer differs at #{differences.first(3).join(", ")}" : objection)
        rescue ScriptError, StandardError => error
          text = error.message.to_s.scrub.lines.first.to_s.strip
          trial(before: fastest(before), same: false, masked: masked,
                reason: "with the fix the work fails: #{error.class}: #{text}")
        end

        def spread_ns(runs)
          least, most = runs.map { |run| run.measurement.duration_ns }.minmax
          most - least
        end

        # A higher cost must show in both time and objects, because times vary. A small difference does not
        # count, because a preload of few records may cost more than it saves.
        def objection(before, after)
          return "there are no fewer queries" if after.queries >= before.queries
          return unless more?(before.allocated_objects, after.allocated_objects, MORE_OBJECTS)
          return unless more?(before.duration_ns, after.duration_ns, MORE_NS)

          "there are fewer queries, but they take longer and make more objects"
        end

        def more?(before, after, least) = after > before * MORE && after > before + least

        def trial(**fields) = Trial.new(findings: @findings, **fields)
      end
    end
  end
end
