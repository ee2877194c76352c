# frozen_string_literal: true

# Compares the responses of servers with peers and with hand-written Rack lambdas, on PostgreSQL.
#
#   rake bench:serve                 # writes benchmark/serve.md; about six minutes
#   BENCH_SHORT=1 rake bench:serve   # only checks that it works and that the responses are equal
#   BENCH_ONLY=letters rake bench:serve   # or sequel, rails; prints, and writes no file
#
# Serves a page of mail logs (also by Roda with Sequel and jsonapi-serializer, and by jsonapi-resources), and
# cached documents: with and without a viewer, with a flag per viewer, and as 304. Runs in its own bundle,
# benchmark/Gemfile. Responses are compared before and after the measurement.
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

  # A world is a process; its contests share what it has loaded.
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

  # This process owns the database server, so it creates the database.
  def measure(world)
    url = Castellan::TestServers.postgres_url
    Benchmarks::Apart.call { world.call(url).map { |contest| contest.measure(**TURNS) } }
  end
end

ServeBenchmark.new.run
