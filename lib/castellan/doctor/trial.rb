# frozen_string_literal: true

module Castellan
  module Doctor
    # What came of trying a fix: the same work twice as it is and twice with the fix, which was applied in memory while it ran.
    #
    #   finding = Castellan::Detect.watch { User.all.map { |user| user.employee&.number } }.first
    #   trial = Castellan::Doctor.try(finding) { User.all.map { |user| user.employee&.number } }
    #   trial.accepted?        # => true
    #   trial.before.queries   # => 151
    #   trial.after.queries    # => 2
    #   trial.same?            # => true: the work answers the same
    #   puts trial
    #   # 151 → 2 queries, 41.0 → 6.2 ms (SQL 12.1 → 0.9 ms), 31,904 → 6,120 objects; the answer is the same
    #
    # `before` and `after` are {Measurement}s, nil when nothing was tried or the work failed with the fix. `masked` names what
    # differs between two runs without the fix, which is not compared. `reason` says why it was not accepted, `reordered` whether the rows
    # came in another order and nothing else differed. Times within `noise_ns` are the same. Frozen; holds no value of the answer.
    Trial = Struct.new(:findings, :before, :after, :same, :masked, :reason, :reordered, :noise_ns, keyword_init: true) do
      def initialize(masked: [], **)
        super
        masked.freeze
        freeze
      end

      # @return [Boolean] whether there are fewer queries and the same answer
      def accepted? = reason.nil?

      # @return [Boolean] whether the work ran with the fix, or failed with it
      def tried? = !same.nil?

      # @return [Boolean] whether the answer was the same with the fix, as far as it is the same at all
      def same? = same ? true : false

      # @return [Integer] nanoseconds that the fix saves, negative where it is slower; 0 when it was not accepted
      def gain_ns = accepted? && after ? before.duration_ns - after.duration_ns : 0

      # @return [Boolean] whether it was accepted and saves more time than two runs of the same work differ
      def worth? = gain_ns > [noise_ns.to_i, before.to_h[:duration_ns].to_i / 20].max

      # @return [String]
      def to_s
        return "not tried: #{reason}" unless tried?
        return "faster, in another order: order the association (#{figures})" if reordered && after.duration_ns < before.duration_ns

        accepted? ? [figures, agreement].join("; ") : "does not help: #{reason}#{" (#{figures})" if after}"
      end

      # @return [Hash{String => Object}]
      def to_h
        { "accepted" => accepted?, "tried" => tried?, "same" => same, "masked" => masked, "reason" => reason,
          "before" => row(before), "after" => row(after) }
      end

      private

      def figures
        pairs = %i[queries allocated_objects].map { |name| change(name) { |number| Figures.whole(number) } }
        times = %i[duration_ns sql_ns].map { |name| change(name) { |ns| Figures.milliseconds(ns).delete_suffix(" ms") } }
        "#{pairs[0]} queries, #{times[0]} ms (SQL #{times[1]} ms), #{pairs[1]} objects"
      end

      def change(name)
        [before, after].map { |measurement| yield measurement[name] }.join(" → ")
      end

      def agreement
        return "the same but for what differs without it, too: #{masked.join(", ")}" if masked.any?

        case before.response_bytes
        when nil then "the answer is the same"
        when 0 then "the same status, and no body to compare"
        else "the same bytes"
        end
      end

      def row(measurement)
        return unless measurement

        { "queries" => measurement.queries, "duration_ms" => (measurement.duration_ns / 1e6).round(3),
          "sql_ms" => (measurement.sql_ns / 1e6).round(3), "allocated_objects" => measurement.allocated_objects }
      end
    end
  end
end
