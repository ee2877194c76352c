# frozen_string_literal: true

module Castellan
  module Doctor
    # Compares the same work without a fix and with it, applied in memory. Frozen.
    #
    #   finding = Castellan::Detect.watch { User.all.map { |user| user.employee&.number } }.first
    #   trial = Castellan::Doctor.try(finding) { User.all.map { |user| user.employee&.number } }
    #   trial.accepted?        # => true
    #   trial.before.queries   # => 151
    #   trial.after.queries    # => 2
    #   puts trial
    #   # 151 → 2 queries, 41.0 → 6.20 ms (SQL 12.1 → 0.90 ms), 31,904 → 6,120 objects; the answer is the same
    #
    # `before` and `after` are {Measurement}s, nil if nothing was tried or the work failed with the fix.
    # `masked` lists places that differ between two runs without the fix; they are not compared. `reason` is
    # why the fix was not accepted; `reordered` is true if only the order of rows differs. Times that differ
    # by less than `noise_ns` count as equal.
    Trial = Struct.new(:findings, :before, :after, :same, :masked, :reason, :reordered, :noise_ns, keyword_init: true) do
      def initialize(masked: [], **)
        super
        masked.freeze
        freeze
      end

      # @return [Boolean] true if the fix gives the same result with fewer queries and at no much higher cost
      def accepted? = reason.nil?

      # @return [Boolean] whether the work ran with the fix, even if it failed
      def tried? = !same.nil?

      # @return [Boolean] whether the results were equal, apart from masked places
      def same? = same ? true : false

      # @return [Integer] nanoseconds that the fix saves; negative if it is slower, 0 if it was not accepted
      def gain_ns = accepted? && after ? before.duration_ns - after.duration_ns : 0

      # @return [Boolean] whether it was accepted and saves more than the noise and more than 5% of the time
      def worth? = accepted? && saves?

      # @return [Boolean] whether it was not accepted only because rows come in another order, and saves as much
      def reorders? = reordered && saves?

      def to_s
        return "not tried: #{reason}" unless tried?
        return "faster, in another order: order the association (#{figures})" if reorders?

        accepted? ? "#{figures}; #{agreement}" : "does not help: #{reason}#{" (#{figures})" if after}"
      end

      # @return [Hash{String => Object}]
      def to_h
        { "accepted" => accepted?, "tried" => tried?, "same" => same, "masked" => masked, "reason" => reason,
          "before" => row(before), "after" => row(after) }
      end

      private

      def saves? = !after.nil? && before.duration_ns - after.duration_ns > [noise_ns.to_i, before.duration_ns / 20].max

      def figures
        "#{change(:queries)} queries, #{change(:duration_ns, 1e6)} ms (SQL #{change(:sql_ns, 1e6)} ms), " \
          "#{change(:allocated_objects)} objects"
      end

      def change(name, unit = 1) = [before, after].map { |measurement| Figures.number(measurement[name] / unit) }.join(" → ")

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

        { "queries" => measurement.queries, "duration_ms" => Figures.milliseconds(measurement.duration_ns),
          "sql_ms" => Figures.milliseconds(measurement.sql_ns), "allocated_objects" => measurement.allocated_objects }
      end
    end
  end
end
