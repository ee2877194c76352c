# frozen_string_literal: true

# Compares documents of loaded records with Panko, Alba, oj_serializers and jsonapi-serializer.
#
#   rake bench:records                 # writes benchmark/records.md; about three minutes
#   BENCH_SHORT=1 rake bench:records   # few records and rounds, only checks that the documents are equal
#   BENCH_JSON=rows.json rake bench:records
#
# 1,000 records with ten attributes, read before and not, and the cases of Panko's own benchmarks. On SQLite,
# and on PostgreSQL if it is installed. Runs in its own bundle, benchmark/Gemfile, which it installs if
# needed.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require "active_record"
require "castellan"
require_relative "../test/support/servers"
require_relative "support/apart"
require_relative "support/comparison"
require_relative "support/database"
require_relative "support/preface"
require_relative "serialize/peers"
require_relative "records/cards"
require_relative "records/panko_cases"

short = ENV["BENCH_SHORT"] == "1"
turns = short ? { rounds: 2, enough: 0, collect: false } : { rounds: Integer(ENV.fetch("BENCH_ROUNDS", "9")) }
cards, *posts = short ? [40, 10] : [1000, 50, 2300]

nested = Benchmarks::Comparison.new("Castellan, nested", **turns)
Benchmarks::Database.each do |database, url|
  [-> { Benchmarks::Cards.new(cards) }, -> { Benchmarks::PankoCases.new(posts) }].each do |source|
    works = Benchmarks::Apart.call do
      Benchmarks::Database.open(url) do
        source.call.enum_for(:each).map { |title, ways, goals| nested.measure("#{title}, #{database}", ways, goals: goals) }
      end
    end
    nested.works.concat(works)
  end
end

report = ["# Loaded records", "", *Benchmarks::Preface.lines("records", turns[:rounds]), "",
          "Panko, Alba and oj_serializers write no JSON:API, so their documents are compared with Castellan's nested format. " \
          "Panko's posts are the same records in every call, as in its own benchmarks. The floor is a program by hand: a hash of the " \
          "readers' values for each record, and JSON.generate.", "", *nested.goals, *nested.tables, ""].join("\n")
puts report
File.write(File.join(__dir__, "records.md"), report) unless short
if ENV["BENCH_JSON"]
  File.write(ENV["BENCH_JSON"], nested.rows.map { |row| JSON.generate(benchmark: "records", **row) << "\n" }.join, mode: "a")
end
