# frozen_string_literal: true

require "etc"
require "json"
require "sqlite3"

module Benchmarks
  # Writes benchmark/serialize.md, and the lines for BENCH_JSON.
  class Report
    GEMS = %w[
      activerecord active_model_serializers jsonapi-serializer panko_serializer alba oj oj_serializers sequel pg sqlite3 json
    ].freeze
    # The way that all others of a table are compared with.
    OURS = "Castellan"

    # @param postgres [String, nil] the version of PostgreSQL
    # @param short [Boolean] whether the run was too short for the goals
    def initialize(measured, rounds:, postgres:, short: false)
      @short = short
      @measured = measured
      @rounds = rounds
      @postgres = postgres
    end

    # @return [String] Markdown
    def to_s
      ["# From the database to bytes, beside other serializers", "", *preface, "", "## Goals", "", *goals,
       *@measured.works.flat_map { |work| ["", "## #{work.title}, #{work.database}", "", *table(work)] },
       *@measured.growth.flat_map { |database, rows| ["", "## Growth, #{database}", "", *growth(rows, "objects")] },
       *@measured.streamed.flat_map { |database, rows| ["", "## Streamed, #{database}", "", *growth(rows, "KB at most")] }, ""].join("\n")
    end

    # @return [Array<Hash>]
    def rows
      [*@measured.works.flat_map { |work| ways(work).map { |way| row(work, way) } },
       *{ "growth" => @measured.growth, "streamed" => @measured.streamed }.flat_map { |work, found| grown(work, found) },
       *goal_rows].map { |row| { benchmark: "serialize", **row } }
    end

    private

    def goal_rows
      return [] if @short

      Goals.of(@measured).map { |goal| { goal: goal.text, found: goal.found, verdict: goal.verdict.delete("*"), floor: goal.floor } }
    end

    def preface
      ["Written by `rake bench:serialize`: Ruby #{RUBY_VERSION} (#{yjit}), #{machine}, #{@postgres || "no PostgreSQL"}, " \
       "SQLite #{SQLite3::SQLITE_VERSION}, #{versions}.", "",
       "Before anything is timed the documents are parsed and compared (without the order of `included`), JSON:API with JSON:API and " \
       "nested with nested; Panko, Alba and oj_serializers write no JSON:API, so they write the same records as nested JSON " \
       "(Oj in its Rails mode, without `Oj.optimize_rails`, which would change all the others). " \
       "Everything is eager loaded, the last login as one row a user. The ways take turns, #{@rounds} rounds; `ms` is the median of the " \
       "rounds, `times Castellan` the ratio of the medians, with the least and the greatest ratio of a round. Objects are those that one " \
       "call allocates. No cache of documents takes part, and no web server.", "",
       "The floor of a work is a program written by hand for its document alone (`benchmark/serialize/by_hand.rb`): joins in prepared " \
       "SELECTs, and the document built from pieces of text. Beside a goal stands how many times as fast it is as the same other way."]
    end

    def versions
      GEMS.map { |name| "#{name} #{Gem.loaded_specs[name]&.version || JSON::VERSION}" }.join(", ")
    end

    def yjit
      defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? "YJIT on" : "YJIT off"
    end

    def machine
      model = File.exist?("/proc/cpuinfo") ? File.read("/proc/cpuinfo")[/model name\s*: (.*)/, 1] : nil
      "#{Etc.nprocessors} processors#{" (#{model})" if model}, #{RUBY_PLATFORM}"
    end

    def goals
      return ["Not told by a short run."] if @short

      ["| goal | measured | | the program by hand |", "|---|---|---|---|",
       *Goals.of(@measured).map { |goal| "| #{goal.text} | #{goal.found} | #{goal.verdict} | #{goal.floor} |" }]
    end

    def table(work)
      ["| way | ms | times Castellan (min..max) | objects | bytes |", "|---|---|---|---|---|",
       *ways(work).map { |way| "| #{cells(work, way).join(" | ")} |" }]
    end

    def cells(work, way)
      [way, work.paired.ms(way), times(work, way), work.paired.objects(way), work.bytes[way] || "–"]
    end

    def ways(work)
      work.paired.names.sort_by { |way| work.paired.ms(way) }
    end

    def times(work, way)
      way == OURS ? "1" : work.paired.times(OURS, way).to_s
    end

    def row(work, way)
      paired = work.paired
      { work: work.title, database: work.database, way: way, ms: paired.ms(way), objects: paired.objects(way),
        bytes: work.bytes[way], times_castellan: paired.times(OURS, way).median.round(3) }
    end

    def grown(work, found)
      found.flat_map { |database, rows| rows.map { |row| { work: work, database: database, **row } } }
    end

    def growth(rows, cost)
      ["| users | ms | µs a user | #{cost} | bytes |", "|---|---|---|---|---|", *rows.map { |row| "| #{row.values.join(" | ")} |" }]
    end
  end
end
