# frozen_string_literal: true

# Measures answers of servers beside peers and beside hand-written Rack lambdas: a page of mail logs (Roda with Sequel and
# jsonapi-serializer, jsonapi-resources), and kept documents with and without a viewer, with a flag of the viewer, and as 304.
# PostgreSQL only.
#
#   rake bench:serve                 # writes benchmark/serve.md; about six minutes
#   BENCH_SHORT=1 rake bench:serve   # shows that it works and that the answers are equal
#   BENCH_ONLY=letters rake bench:serve   # or sequel, rails; prints, writes no file
#
# Runs in its own bundle, benchmark/Gemfile. Answers are compared before and after they are timed.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require_relative "serve/contest"
require_relative "serve/letters"
require_relative "serve/mail_logs"
require_relative "serve/own_part"
require_relative "serve/page"

class ServeBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS = Integer(ENV.fetch("BENCH_ROUNDS", "7"))
  TURNS = SHORT ? { rounds: 1, seconds: 0.05, enough: 0 }.freeze : { rounds: ROUNDS, seconds: 1 }.freeze

  # A world is one process: its contests share what is loaded.
  WORLDS = {
    "sequel" => ->(url) { [Benchmarks::MailLogs.new(url).on_sequel] },
    "rails" => ->(url) { [Benchmarks::MailLogs.new(url).on_rails] },
    "letters" => ->(url) { Benchmarks::Letters.new(url).contests }
  }.freeze

  def run
    abort "bench:serve needs PostgreSQL; install the package postgresql." unless Castellan::TestServers.available?(:postgres)
    only = ENV["BENCH_ONLY"]
    results = WORLDS.select { |name, _| only.nil? || only == name }.values.flat_map { |world| measure(world) }
    page = Benchmarks::ServedPage.new(results, rounds: TURNS[:rounds], short: SHORT || only)
    puts page
    File.write(File.join(__dir__, "serve.md"), page.to_s) unless SHORT || only
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| page.rows.each { |row| file.puts(JSON.generate(row)) } } if ENV["BENCH_JSON"]
  end

  private

  # This process owns the database server, and creates the database.
  def measure(world)
    url = Castellan::TestServers.postgres_url
    Benchmarks::Apart.call { world.call(url).map { |contest| contest.measure(**TURNS) } }
  end
end

ServeBenchmark.new.run
