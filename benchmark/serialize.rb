# frozen_string_literal: true

# Compares whole documents, from the database to bytes, with other serializers, and the encoders on fetched
# rows.
#
#   rake bench:serialize                 # writes benchmark/serialize.md; about five minutes
#   BENCH_SHORT=1 rake bench:serialize   # few users and rounds, only checks that the documents are equal
#   BENCH_JSON=rows.json rake bench:serialize
#   BENCH_ROUNDS=5 rake bench:serialize  # 9 by default
#
# The others are ActiveModel::Serializers, jsonapi-serializer, Panko, Alba, oj_serializers, only the SELECTs,
# and PostgreSQL's own JSON. On SQLite, and on PostgreSQL if it is installed. The data is that of
# examples/users (1,000 matching users) and examples/posts. Runs in its own bundle, benchmark/Gemfile, which
# it installs if needed. Documents are compared before they are timed, and the first difference ends the run.
# Figures hold for this machine only; ratios are more portable.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require_relative "../test/support/servers"
require_relative "support/apart"
require_relative "support/example"
require_relative "support/paired"
require_relative "support/same_documents"
require_relative "serialize/measured"
require_relative "serialize/goals"
require_relative "serialize/growth"
require_relative "serialize/streamed"
require_relative "serialize/users_works"
require_relative "serialize/people_works"
require_relative "serialize/posts_works"
require_relative "serialize/report"

class SerializeBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  USERS = SHORT ? 40 : 1000
  PEOPLE = SHORT ? 60 : 100_000
  POSTS = SHORT ? 20 : 100
  TURNS = SHORT ? { rounds: 2, enough: 0, collect: false }.freeze : { rounds: Integer(ENV.fetch("BENCH_ROUNDS", "9")) }.freeze
  GROWTH = SHORT ? [1, 4, 40] : [1, 10, 100, 1000, 10_000]
  STREAMED = SHORT ? [1, 100] : [1, 1000, 10_000, 100_000]

  def initialize
    @measured = Benchmarks::Measured.new(users: USERS)
  end

  def run
    databases.each { |database| measure(database) }
    report = Benchmarks::Report.new(@measured, rounds: TURNS[:rounds], postgres: @postgres, short: SHORT)
    puts report
    File.write(File.join(__dir__, "serialize.md"), report.to_s) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| report.rows.each { |row| file.puts(JSON.generate(row)) } } if ENV["BENCH_JSON"]
  end

  private

  def databases
    Castellan::TestServers.available?(:postgres) ? %w[PostgreSQL SQLite] : %w[SQLite]
  end

  def measure(database)
    users = Benchmarks::Example.new("users", "USERS" => USERS.to_s)
    keep apart(database) { with(users, database) { works(database, Benchmarks::UsersWorks.new(users, postgres: @url, users: USERS)) } }
    people(database)
    posts = Benchmarks::Example.new("posts")
    keep apart(database) { with(posts, database) { works(database, Benchmarks::PostsWorks.new(posts, posts: POSTS)) } }
    many = Benchmarks::Example.new("users", "USERS" => (GROWTH.last * 2 / 3.0).ceil.to_s)
    @measured.growth[database] = apart(database) { with(many, database) { Benchmarks::Growth.measure(many, GROWTH, TURNS) } }
    @measured.streamed[database] = apart(database) { Benchmarks::Streamed.measure(STREAMED, @url) }
  end

  def people(database)
    empty = Benchmarks::Example.new("users", "USERS" => "1")
    [[USERS, nil], [PEOPLE, 20]].each do |users, limit|
      keep apart(database) {
        with(empty, database) { works(database, Benchmarks::PeopleWorks.new(empty, postgres: @url, users: users, limit: limit)) }
      }
    end
  end

  def keep(works)
    @measured.works.concat(works)
  end

  # This process owns the database server, so it creates the database.
  def apart(database, &)
    @url = database == "PostgreSQL" ? Castellan::TestServers.postgres_url : nil
    @postgres ||= version if @url
    Benchmarks::Apart.call(&)
  end

  def with(example, database, &)
    warn "#{database}: #{example}"
    example.open(@url, &)
  end

  def version
    connection = PG.connect(@url)
    "PostgreSQL #{connection.parameter_status("server_version")[/[\d.]+/]}"
  ensure
    connection&.close
  end

  def works(database, source)
    source.enum_for(:each).map do |key, title, ways|
      bytes = Benchmarks::SameDocuments.check("#{title} (#{database})", ways)
      Benchmarks::Measured::Work.new(key, database, title, bytes, Benchmarks::Paired.new(ways, **TURNS))
    end
  end
end

SerializeBenchmark.new.run
