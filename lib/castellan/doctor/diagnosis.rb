# frozen_string_literal: true

module Castellan
  module Doctor
    # Formats an examination: figures, findings with file and line, and the next step.
    #
    #   puts Diagnosis.new(examination, trials: Trials.of(application, request, examination.findings))
    #
    # The next step is the fix with the largest measured gain, else a hint about the slowest part. Truncates
    # statements; {#to_h} has the whole text.
    class Diagnosis
      FIGURES = %i[queries cached_queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes status].freeze
      WIDTH = 100
      MANY_OBJECTS = 5_000
      MOSTLY_SQL = 0.6
      SLOW_NS = 20_000_000
      private_constant :FIGURES, :WIDTH, :MANY_OBJECTS, :MOSTLY_SQL, :SLOW_NS

      # @param comparable [Boolean] false if code reloads between requests
      # @param rows [Hash{String => Integer}] the number of rows of each table
      # @param trials [Hash{Finding, Symbol => Trial}] see {Trials.of}
      # @param reached [String] why steps are missing, see {Progress#reached}
      def initialize(examination, comparable: true, rows: {}, trials: {}, reached: "the limit was reached")
        @examination = examination
        @measurement = examination.measurement
        @comparable = comparable
        @rows = rows
        @trials = trials
        @reached = reached
        @groups = Profile::Page::FindingGroup.all(examination.findings)
      end

      def to_s = [heading, *warnings, "", *figures, *findings, "", "next: #{next_step}"].join("\n")

      # @return [Hash{String => Object}] with the same names as in the ledger; durations in milliseconds
      def to_h
        figures = { "duration_ms" => Figures.milliseconds(@measurement.duration_ns),
                    "sql_ms" => Figures.milliseconds(@measurement.sql_ns), **FIGURES.to_h { |name| [name.to_s, @measurement[name]] } }
        figures.merge("request" => @examination.request.to_s, "comparable" => @comparable, "runs" => @examination.runs,
                      "range_ms" => @examination.range_ns.map { |ns| Figures.milliseconds(ns) },
                      "left_out" => @examination.left_out, "tables" => @rows,
                      "findings" => @examination.findings.map { |finding| with_trial(finding) },
                      "together" => @trials[:together]&.to_h, "next_step" => next_step)
      end

      # @return [String]
      def next_step
        repeated || slow_sql || many_objects || slow ||
          "nothing stands out; castellan load measures how many such requests per second the server answers"
      end

      private

      def with_trial(finding) = finding.to_h.transform_keys(&:to_s).merge("trial" => @trials[finding]&.to_h)

      def heading = "#{@examination.request} → #{@measurement.status}"

      def warnings
        comparable = "  NOT COMPARABLE with other measurements: code is reloaded between requests, which takes time; " \
                     "measure with --env production, and with config.enable_reloading = false there"
        left_out = "  INCOMPLETE: #{@reached}; left out: #{@examination.left_out} and what follows it"
        [*(comparable unless @comparable), *(left_out if @examination.left_out)]
      end

      def figures
        of = case @examination.runs
             when 0 then "the profiled run"
             when 1 then "one warm run"
             else "the median of #{@examination.runs} warm runs"
             end
        cached = ", #{Figures.count(@measurement.cached_queries)} more answered by the query cache" if @measurement.cached_queries.positive?
        [line("duration", "#{Figures.duration(@measurement.duration_ns)} (#{of}), of which SQL " \
                          "#{Figures.duration(@measurement.sql_ns)} in #{Figures.counted(@measurement.queries, "query")}#{cached}"),
         line("allocated", "#{Figures.counted(@measurement.allocated_objects, "object")}#{bytes}"),
         *(line("retained", retained) if @measurement.retained_objects),
         line("response", Figures.counted(@measurement.response_bytes, "byte")),
         *(line("table rows", @rows.map { |table, rows| "#{table} #{Figures.count(rows)}" }.join(", ")) if @rows.any?)]
      end

      def bytes
        return ", #{Figures.bytes(@measurement.allocated_bytes)}" if @measurement.allocated_bytes

        "; bytes are not counted: that takes too long" if @measurement.duration_ns >= Examination::SLOWEST_WITH_MEMORY_NS
      end

      def retained = "#{Figures.counted(@measurement.retained_objects, "object")}, #{Figures.bytes(@measurement.retained_bytes)}"

      def line(name, text) = format("  %-11s %s", name, text)

      def findings
        return ["", "  no query is repeated"] if @groups.empty?

        lines = @groups.each.with_index(1).flat_map { |group, number| ["", *lines_of(group, number)] }
        @trials[:together] ? [*lines, "", "#{together}: #{@trials[:together]}"] : lines
      end

      def lines_of(group, number)
        ["#{number}. #{Figures.counted(group.count, "query")}, #{cost(group)}: #{group.words}", *loads(group), *places(group),
         labelled("fix", group.fix || "none: #{group.fix_refused}"),
         *(labelled("tried", @trials[group.first].to_s) if @trials[group.first])]
      end

      # The figures of :cached_repeat are upper limits of what the query cache's answers cost.
      def cost(group)
        total = Figures.duration(group.total_ns)
        group.first.objects ? "at most #{total} and #{Figures.counted(group.findings.sum(&:objects), "object")}" : total
      end

      def loads(group)
        group.loaded.map { |count, place| labelled("loaded", "#{count ? Figures.count(count) : "the"} records at #{place}") }
      end

      def places(group)
        group.places.flat_map do |place, same|
          source = same.first.source.to_s.strip
          [labelled("sent", "at #{place}"), *(labelled("", cut(source)) unless source.empty?),
           *same.map { |finding| labelled("", "#{Figures.count(finding.count)} × #{cut(finding.fingerprint.to_s)}") }]
        end
      end

      def labelled(name, text) = format("   %-7s %s", name, text)
      def cut(text) = text.size > WIDTH ? "#{text[0, WIDTH - 1]}…" : text

      def together
        numbers = @groups.each.with_index(1).filter_map { |group, number| number if @trials[:together].findings.include?(group.first) }
        "#{numbers[0..-2].join(", ")} and #{numbers.last} together"
      end

      def repeated
        return if @groups.empty?

        with_fix = @groups.map(&:first).select(&:fix)
        best = best_tried(with_fix) || with_fix.find { |finding| !@trials[finding]&.tried? }&.fix
        return best if best
        return "nothing worth doing: the changes that were tried do not help, or save less time than two runs differ" if with_fix.any?

        return @groups.first.fix_refused if @groups.none?(&:repeats?)

        "no preload removes the repetition; the findings above give the reasons"
      end

      # The fix that saves the most time, or all fixes together if that saves more.
      def best_tried(findings)
        best = findings.select { |finding| @trials[finding]&.worth? || @trials[finding]&.reorders? }
                       .max_by { |finding| share(@trials[finding]) }
        together = @trials[:together]
        return best && step(best) unless together&.worth? && share(together) > (best ? share(@trials[best]) : 0)

        "all of these together: #{together.findings.map(&:fix).uniq.join("; and ")}"
      end

      def step(finding)
        order = "; its rows then come in another order: where that matters, order the association (has_many :roles, -> { order(:id) })"
        "#{finding.fix}#{order if @trials[finding].reorders?}"
      end

      # Each trial measures the work without its fix again, and on a busy machine these times differ. So
      # compare what a fix saves of its own measurement.
      def share(trial) = (trial.before.duration_ns - trial.after.duration_ns).fdiv(trial.before.duration_ns)

      def slow_sql
        return if @measurement.duration_ns < SLOW_NS || @measurement.sql_ns < @measurement.duration_ns * MOSTLY_SQL

        "no query is repeated, and most of the time is SQL: look at the plan of the slowest statement (EXPLAIN ANALYZE) for a missing index"
      end

      def many_objects
        return if @measurement.allocated_objects < MANY_OBJECTS

        made = "#{Figures.count(@measurement.allocated_objects)} objects"
        return "no query is sent, and #{made} are allocated: find the lines with ?profile=objects" if @measurement.queries.zero?

        "no query is repeated, and #{made} are allocated: render it from rows with a Castellan::Resource; if one renders it already, " \
          "keep the document (cache :exact) or send less (page, fields)"
      end

      def slow
        return if @measurement.duration_ns < SLOW_NS

        "no query is repeated and little is allocated: find the lines with a profile of wall time (?profile=wall), which includes waiting"
      end
    end
  end
end
