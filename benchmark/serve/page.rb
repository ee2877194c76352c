# frozen_string_literal: true

require "etc"

module Benchmarks
  # Writes benchmark/serve.md, and the lines for BENCH_JSON.
  class ServedPage
    # contest, way, at least how many times, as which way, figure, and the lower limit: a lambda that does the
    # same
    GOALS = [
      ["20 mail logs with count, category and company, Sequel", MailLogs::APP, 5, MailLogs::RODA, :rate, MailLogs::HAND],
      ["20 mail logs with count, category and company, ActiveRecord", MailLogs::APP, 15, MailLogs::RESOURCES, :rate, MailLogs::HAND],
      ["20 mail logs with count, category and company, Sequel", MailLogs::APP, 0.8, MailLogs::HAND, :rate],
      ["20 mail logs with count, category and company, ActiveRecord", MailLogs::APP, 0.8, MailLogs::HAND, :rate],
      ["20 letters, kept for everybody", Letters::CASTELLAN, 0.85, Letters::CONSTANT, :cpu_us, Letters::VERSION],
      ["20 letters, kept for everybody", Letters::CASTELLAN, 0.7, Letters::CONSTANT, :rate, Letters::VERSION],
      ["20 letters, kept for everybody", Letters::NOTIFIED, 0.85, Letters::CONSTANT, :cpu_us],
      ["20 letters, kept for everybody", Letters::NOTIFIED, 0.7, Letters::CONSTANT, :rate],
      ["20 letters, kept for their viewer", Letters::CASTELLAN, 0.6, Letters::LOOK_UP, :rate, Letters::BOTH],
      ["20 letters, kept for their viewer", Letters::NOTIFIED, 0.6, Letters::LOOK_UP, :rate],
      ["100 letters with a flag of the viewer", Letters::CASTELLAN, 1.5, Letters::ALBA, :rate],
      ["304 of 20 letters", Letters::CASTELLAN, 0.9, Letters::LOOK_UP_304, :rate, Letters::BOTH_304],
      ["304 of 20 letters", Letters::NOTIFIED, 0.9, Letters::LOOK_UP_304, :rate],
      ["304 of 100 letters with a flag of the viewer", Letters::CASTELLAN, 0.6, Letters::LOOK_UP_304, :rate, Letters::FLAGS_304],
      ["304 of 100 letters with a flag of the viewer", Letters::VERSIONED, 0.6, Letters::LOOK_UP_304, :rate, Letters::BOTH_304],
      ["304 of 100 letters with a flag of the viewer", Letters::BOTH_NAMED, 0.6, Letters::LOOK_UP_304, :rate]
    ].freeze
    FIGURES = { rate: "by rate", cpu_us: "by processor time" }.freeze
    MOST_OWN = 150
    private_constant :GOALS, :FIGURES, :MOST_OWN

    # @param results [Array<Contest::Result>]
    def initialize(results, rounds:, short:)
      @results = results
      @rounds = rounds
      @short = short
    end

    # @return [String] Markdown
    def to_s
      ["# Served, beside peers and hand-written lambdas", "", preface, *(goals unless @short),
       *@results.flat_map { |result| ["", "## #{heading(result)}", "", *table(result), *own_line(result)] },
       ""].join("\n")
    end

    # @return [Array<Hash>] a line for each way
    def rows
      @results.flat_map do |result|
        result.rows.map { |row| { benchmark: "serve", work: result.title, way: row.name, **row.to_h.except(:name) } }
      end
    end

    private

    def preface
      "Written by `rake bench:serve`: Ruby #{RUBY_VERSION}, #{Etc.nprocessors} processors, PostgreSQL on the same machine, " \
        "#{@rounds} rounds in turns, medians. `µs`: one call in the process, without a web server. Rate and processor time: behind " \
        "the same Puma, four clients in another process; the processor time is that of Puma's process, for each request. Every way " \
        "answers the same document, compared before and after. The floor of a goal is the share of a lambda that does the same work by " \
        "hand; without one, it is the lambda of the goal. Castellan's own is the processor time of `call`, without that of the token and " \
        "of the same statements, sent by hand in the same pipelines on the same connection."
    end

    def goals
      ["", "| goal | measured | | the floor |", "|---|---|---|---|", *GOALS.map { |goal| "| #{verdict(*goal).join(" | ")} |" },
       *@results.filter_map { |result| "| #{own(result).join(" | ")} |" if result.own }]
    end

    def own(result)
      call, rest, written = result.own
      us = (call - rest).round
      ["#{result.title}: Castellan's own ≤ #{MOST_OWN} µs", "#{us} µs", us <= MOST_OWN ? "reached" : "**not reached**",
       "#{(written - rest).round} µs"]
    end

    def own_line(result)
      call, rest, written = result.own
      return unless call

      ["", "Castellan's own: #{(call - rest).round} µs of the processor (`call` #{call}, token and statements by hand #{rest}); " \
           "the lambda's: #{(written - rest).round} (`call` #{written})."]
    end

    def verdict(title, way, least, other, figure, floor = nil)
      result = @results.find { |one| one.title == title }
      share = share(result, way, other, figure)
      ["#{title}: #{way} ≥ #{least} × #{other}, #{FIGURES.fetch(figure)}", "#{share.round(2)} ×",
       share >= least ? "reached" : "**not reached**", floor && "#{share(result, floor, other, figure).round(2)} ×"]
    end

    def share(result, way, other, figure)
      ours, theirs = [way, other].map { |name| result.row(name)[figure] }
      figure == :rate ? ours.fdiv(theirs) : theirs.fdiv(ours)
    end

    def heading(result)
      result.bytes.zero? ? result.title : "#{result.title} (#{result.bytes} bytes)"
    end

    def table(result)
      ["| way | µs | objects | requests/s | processor µs |", "|---|---|---|---|---|",
       *result.rows.sort_by(&:us).map { |row| "| #{row.to_a.join(" | ")} |" }]
    end
  end
end
