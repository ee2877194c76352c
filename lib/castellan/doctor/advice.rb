# frozen_string_literal: true

module Castellan
  module Doctor
    # Recommends the next step after an examination: repeated queries first, then the slowest part.
    #
    #   Advice.new(examination).to_s   # => "add .preload(:employee) where the users are loaded: …"
    class Advice
      MANY_OBJECTS = 5_000
      MOSTLY_SQL = 0.6
      SLOW_NS = 20_000_000
      private_constant :MANY_OBJECTS, :MOSTLY_SQL, :SLOW_NS

      # @param trials [Hash{Finding => Trial}]
      def initialize(examination, trials = {})
        @examination = examination
        @trials = trials
        @measurement = examination.measurement
      end

      # @return [String]
      def to_s
        repeated || sql || objects || time || "nothing stands out; castellan load says how many such requests the server answers"
      end

      private

      def repeated
        groups = FindingGroup.all(@examination.findings)
        return if groups.empty?

        mendable = groups.select(&:fix)
        best = best_tried(mendable) || mendable.find { |group| !trial(group)&.tried? }&.fix
        return best if best
        return "nothing worth doing: the changes that were tried do not help, or save less time than two runs differ" if mendable.any?

        return groups.first.fix_refused if groups.none?(&:repeats?)

        "no preload mends what is repeated; see above for what to ask at once instead"
      end

      # The fix that saves the most time; all together only if that saves more than the best fix alone.
      def best_tried(groups)
        best = groups.select { |group| trial(group)&.worth? }.max_by { |group| trial(group).gain_ns }
        together = @trials[:together]
        return best&.fix unless together&.worth? && together.gain_ns > (best ? trial(best).gain_ns : 0)

        "all of these together: #{together.findings.map(&:fix).uniq.join("; and ")}"
      end

      def trial(group) = @trials[group.findings.first]

      def sql
        return if @measurement.duration_ns < SLOW_NS || @measurement.sql_ns < @measurement.duration_ns * MOSTLY_SQL

        "no query is repeated, and most of the time is SQL: look at the plan of the slowest statement (EXPLAIN ANALYZE) for a missing index"
      end

      def objects
        return if @measurement.allocated_objects < MANY_OBJECTS
        return keep if @examination.castellan?

        made = "#{Figures.count(@measurement.allocated_objects)} objects"
        return "nothing is read, and #{made} are made: a profile of the objects says where (stackprof)" if @measurement.queries.zero?

        "no query is repeated, and the time goes into #{made}, models and hashes that are thrown away: render it from rows, with a " \
          "Castellan::Resource"
      end

      def keep
        "a Castellan resource writes it already; what is left is to keep the document (cache :exact) or to send less (page, fields)"
      end

      def time
        return if @measurement.duration_ns < SLOW_NS

        "no query is repeated and little is allocated: a profile of the time says where it goes, into computing or into waiting " \
          "(stackprof, vernier; of the clock's time, not the processor's)"
      end
    end
  end
end
