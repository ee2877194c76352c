# frozen_string_literal: true

# Compares serializers whose blocks load associations with jsonapi-serializer: queries and time.
#
#   rake bench:together                 # writes benchmark/together.md; about two minutes
#   BENCH_SHORT=1 rake bench:together   # few records and rounds, only checks that the bytes are equal
#   BENCH_JSON=rows.json rake bench:together
#
# The same code serializes a relation, records, and records with all associations preloaded. On SQLite, and on
# PostgreSQL if it is installed. Runs in its own bundle, benchmark/Gemfile, which it installs if needed.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require "active_record"
require "active_support/all"
require "jsonapi/serializer"
require "castellan"
require_relative "../test/support/servers"
require_relative "support/apart"
require_relative "support/comparison"
require_relative "support/database"
require_relative "support/preface"
require_relative "together/shop"

short = ENV["BENCH_SHORT"] == "1"
turns = short ? { rounds: 2, enough: 0, collect: false } : { rounds: Integer(ENV.fetch("BENCH_ROUNDS", "9")) }
comparison = Benchmarks::Comparison.new("Castellan::Serializer", **turns)
Benchmarks::Database.each do |database, url|
  works = Benchmarks::Apart.call do
    Benchmarks::Database.open(url) do
      Benchmarks::Shop.new(short ? 5 : 100).enum_for(:each).map do |title, ways, goals, queries|
        comparison.measure("#{title}, #{database}", ways, goals: goals, more: { "queries" => queries })
      end
    end
  end
  comparison.works.concat(works)
end

fewer = comparison.works.filter_map do |work|
  theirs, ours = work.more["queries"].values_at("jsonapi-serializer", "Castellan::Serializer")
  next if ours.zero? || theirs == ours

  verdict = ours * 10 <= theirs ? "reached" : "**not reached**"
  "| #{work.title}: ≤ 1/10 of the queries of jsonapi-serializer | #{ours} of #{theirs} | #{verdict} | |"
end
report = ["# Serializers with blocks", "", *Benchmarks::Preface.lines("together", turns[:rounds]), "",
          "The bytes of both libraries are equal. Where everything is preloaded, nearly all of the time is in the blocks: " \
          "`the blocks alone` calls them without writing a document, and is the least time that any serializer can take.", "",
          *comparison.goals, *fewer, *comparison.tables, ""].join("\n")
puts report
File.write(File.join(__dir__, "together.md"), report) unless short
if ENV["BENCH_JSON"]
  File.write(ENV["BENCH_JSON"], comparison.rows.map { |row| JSON.generate(benchmark: "together", **row) << "\n" }.join, mode: "a")
end
