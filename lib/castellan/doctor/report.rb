# frozen_string_literal: true

module Castellan
  module Doctor
    # Formats an examination: figures, findings with file and line, and the next step.
    #
    #   puts Report.new(examination, comparable: true)
    class Report
      FIGURES = %i[queries cached_queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes status].freeze
      private_constant :FIGURES

      # @param comparable [Boolean] false if code reloads between requests
      # @param rows [Hash{String => Integer}] rows by table
      # @param trials [Hash{Finding, Symbol => Trial}] see {Trials.of}
      def initialize(examination, comparable: true, rows: {}, trials: {})
        @examination = examination
        @trials = trials
        @measurement = examination.measurement
        @comparable = comparable
        @rows = rows
      end

      # @return [String]
      def to_s
        [heading, warning, "", time, objects, retained, response, tables, *findings, "", "next: #{advice}"].compact.join("\n")
      end

      # @return [Hash{String => Object}] with the names of the ledger's figures
      def to_h
        row.merge("request" => @examination.request.to_s, "comparable" => @comparable, "runs" => @examination.runs, "tables" => @rows,
                  "findings" => @examination.findings.map { |finding| told(finding) }, "together" => @trials[:together]&.to_h,
                  "next_step" => advice)
      end

      # @return [Hash{String => Numeric, nil}] durations in milliseconds
      def row
        { "duration_ms" => milliseconds(@measurement.duration_ns), "sql_ms" => milliseconds(@measurement.sql_ns) }
          .merge(FIGURES.to_h { |name| [name.to_s, @measurement[name]] })
      end

      private

      def told(finding) = finding.to_h.transform_keys(&:to_s).merge("trial" => @trials[finding]&.to_h)

      def milliseconds(nanoseconds) = (nanoseconds / 1e6).round(3)

      def heading
        "#{@examination.request} → #{@measurement.status}"
      end

      def warning
        return if @comparable

        "  NOT COMPARABLE with other measurements: code is reloaded between requests, which takes time; measure with --env production"
      end

      def line(name, text) = format("  %-11s %s", name, text)

      def time
        of = @examination.runs == 1 ? "one warm run" : "the median of #{@examination.runs} warm runs"
        cached = ", #{Figures.count(@measurement.cached_queries)} more answered by the query cache" if @measurement.cached_queries.positive?
        line("duration", "#{Figures.duration(@measurement.duration_ns)} (#{of}), of which SQL " \
                         "#{Figures.duration(@measurement.sql_ns)} in #{Figures.counted(@measurement.queries, "query")}#{cached}")
      end

      def objects
        bytes = if @measurement.allocated_bytes then ", #{Figures.bytes(@measurement.allocated_bytes)}"
                elsif @measurement.duration_ns >= Examination::SLOWEST_WITH_MEMORY_NS then "; bytes are not counted: that takes too long"
                end
        line("allocated", "#{Figures.counted(@measurement.allocated_objects, "object")}#{bytes}")
      end

      def retained
        return unless @measurement.retained_objects

        line("retained", "#{Figures.counted(@measurement.retained_objects, "object")}, #{Figures.bytes(@measurement.retained_bytes)}")
      end

      def response
        line("response", Figures.counted(@measurement.response_bytes, "byte"))
      end

      def tables
        line("rows", @rows.map { |table, rows| "#{table} #{Figures.count(rows)}" }.join(", ")) if @rows.any?
      end

      def findings
        return ["", "  no query is repeated"] if @examination.findings.empty?

        groups = FindingGroup.all(@examination.findings)
        lines = groups.each.with_index(1).flat_map { |group, number| ["", *group.lines(number, @trials[group.findings.first])] }
        @trials[:together] ? [*lines, "", "#{together(groups)}: #{@trials[:together]}"] : lines
      end

      def together(groups)
        numbers = groups.each.with_index(1).filter_map { |group, number|
          number if @trials[:together].findings.include?(group.findings.first)
        }
        "#{numbers[0..-2].join(", ")} and #{numbers.last} together"
      end

      def advice
        Advice.new(@examination, @trials).to_s
      end
    end
  end
end
