# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Tries the fix of findings: the work twice as it is, then twice with the fix, and what came of it.
      #
      #   Experiment.new(findings) { application.call(env) }.call   # => Trial
      #
      # The first run of each kind warms up. What differs between the two unfixed runs is not compared with the fixed one.
      class Experiment
        # How much more a fix with fewer queries may cost, in proportion and altogether.
        MORE = 1.25
        MORE_OBJECTS = 5_000
        MORE_NS = 5_000_000
        SAFE = %w[GET HEAD].freeze
        UNANSWERED = "nothing can answer these statements in their place, as they are sent, so that the line must be rewritten"
        CHAINED = "each value stands in the answer to the one before, so that they cannot be collected before the loop"
        private_constant :MORE, :MORE_OBJECTS, :MORE_NS, :SAFE, :CHAINED, :UNANSWERED

        # @param findings [Array<Finding>] what one change mends
        # @yield the work
        def initialize(findings, &work)
          @findings = findings
          @work = work
          @notes = AtOnce::Notes.new(findings)
        end

        # @return [Trial]
        def call
          reason = Untriable.reason(@findings)
          reason ? trial(reason: reason) : unfixed
        end

        private

        def unfixed
          first = nil
          writing = Verbs.during { first = Instrument.record(@notes) { run } }.find { |verb| !SAFE.include?(verb) }
          return trial(reason: "the work answers a #{writing}, and only GET and HEAD are tried") if writing

          before = run
          masked = first.outcome.differences(before.outcome)
          reason = incomparable(before, masked)
          reason ? trial(before: before.measurement, masked: masked, reason: reason) : fixed(before, masked)
        end

        def located(places) = @findings.map { |finding| places.locate(finding) }

        def run(injection = nil) = Run.of(@findings, injection, &@work)

        def incomparable(before, masked)
          if before.asked < 2
            "what was found is not repeated when the work runs again; was something kept meanwhile, or asked by another thread?"
          elsif masked.any? { |place| place == Outcome::WHOLE || place.start_with?("status") }
            "two runs without the fix answer differently as a whole, so nothing says whether the fix changes the answer"
          elsif (lost = located(before.places).index(nil))
            "nothing was loaded at #{@findings[lost].parent_location}; is this the work that the finding is of?"
          end
        end

        def fixed(before, masked)
          injection = Injection.new(located(before.places), @notes)
          warm, after = Array.new(2) { run(injection) }
          return trial(before: before.measurement, masked: masked, reason: rewritten(injection)) if injection.unread
          return trial(before: before.measurement, masked: masked, reason: CHAINED) if injection.chained?
          return trial(before: before.measurement, masked: masked, reason: UNANSWERED) if injection.unanswered?

          differences = [warm, after].flat_map { |one| before.outcome.differences(one.outcome, masked: masked) }.uniq
          trial(before: before.measurement, after: after.measurement, same: differences.empty?, masked: masked, how: how,
                reason: objection(before, after, differences))
        rescue ScriptError, StandardError => error
          trial(before: before.measurement, same: false, masked: masked, reason: failure(error))
        end

        # What a person who reads it should know of the way it was tried.
        def how
          columns = @findings.select { |finding| AtOnce.for?(finding) }.map { |finding| finding.remedy[:together] }
          return if columns.empty?

          columns.any? ? "asked at once for the values of the run before" : "each first answer was kept"
        end

        def rewritten(injection)
          "#{injection.unread} asks the model and not the association of its record, so that the line must be rewritten"
        end

        def failure(error)
          "with the fix the work fails: #{error.class}: #{error.message.to_s.scrub.lines.first.to_s.strip}"
        end

        def objection(before, after, differences)
          return "the answer differs at #{differences.first(3).join(", ")}" if differences.any?

          before = before.measurement
          after = after.measurement
          return "there are no fewer queries" if after.queries >= before.queries

          "there are fewer queries, but they take longer and make more objects" if heavier?(before, after)
        end

        # Both, because the clock alone scatters; and not of a few records, where a preload costs more than it saves.
        def heavier?(before, after)
          more?(before.allocated_objects, after.allocated_objects, MORE_OBJECTS) && more?(before.duration_ns, after.duration_ns, MORE_NS)
        end

        def more?(before, after, least) = after > before * MORE && after > before + least

        def trial(**fields) = Trial.new(findings: @findings, **fields)
      end
    end
  end
end
