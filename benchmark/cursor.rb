# frozen_string_literal: true

# Compares pages by cursor with pages by number, at both ends of a long list in PostgreSQL.
#
# A page at the end must cost at most 1.2 times as much as the first page.
#
#   rake bench:cursor                 # writes benchmark/cursor.md
#   BENCH_SHORT=1 rake bench:cursor   # a short list, only checks the pages
#
# The list is sorted by a column with ties, and has an index on this column and the primary key.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require "active_record"
require "castellan"
require "json"
require "rack/mock_request"
require_relative "../test/support/servers"
require_relative "support/paired"
require_relative "support/way"

class CursorBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROWS = SHORT ? 2_000 : 1_000_000
  DEEP = ROWS / 10 * 9
  ROUNDS = SHORT ? 1 : 31
  SIZE = 20
  GOAL = 1.2
  FIRST = "`page[after]`, the first page"
  LATE = "`page[after]`, at 90 % of the list"
  NUMBER_FIRST = "`page[number]`, the first page"
  NUMBER_LATE = "`page[number]`, at 90 % of the list"

  class Event < ActiveRecord::Base
    self.table_name = "cursor_benchmark_events"
  end

  class EventResource < Castellan::Resource
    model Event
    type "events"
    attributes :name, :day, :happened_at
    sort :day, :id, default: "day"
    page :cursor, size: SIZE
  end

  class NumberedResource < EventResource
    page size: SIZE
  end

  def run
    abort "bench:cursor needs PostgreSQL; install the package postgresql." unless Castellan::TestServers.available?(:postgres)
    create
    @app = Castellan.app do
      resource EventResource
      resource NumberedResource, at: "numbered"
    end
    paths = paths()
    check(paths)
    @paired = Benchmarks::Paired.new(paths.map { |name, path| Benchmarks::Way.new(name, nil) { body(path) } }, rounds: ROUNDS)
    puts report
    File.write(File.join(__dir__, "cursor.md"), report) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| file.puts(JSON.generate(figures)) } if ENV["BENCH_JSON"]
  end

  private

  def create
    ActiveRecord::Base.establish_connection(Castellan::TestServers.postgres_url)
    ActiveRecord::Base.logger = nil
    Event.connection.execute(<<~SQL)
      CREATE TABLE cursor_benchmark_events (id bigserial PRIMARY KEY, name text NOT NULL, day integer NOT NULL, happened_at timestamp);
      INSERT INTO cursor_benchmark_events (name, day, happened_at)
        SELECT 'Event ' || n, n / 37, timestamp '2026-01-01' + n * interval '1 minute' FROM generate_series(1, #{ROWS}) n;
      CREATE INDEX ON cursor_benchmark_events (day, id);
    SQL
    Event.connection.execute("VACUUM ANALYZE cursor_benchmark_events")
  end

  # The cursor of the last row before the late page, as in the links that the server writes.
  def paths
    order = Castellan::Plan::Request.parse(EventResource.definition, {}).cursor.order
    row = Event.order(:day, :id).offset(DEEP - 1).limit(1).first
    cursor = Castellan::Plan::Cursor.new([row.day.to_s, row.id.to_s]).text(order)
    { FIRST => "/events", LATE => "/events?page[after]=#{cursor}", NUMBER_FIRST => "/numbered",
      NUMBER_LATE => "/numbered?page[number]=#{(DEEP / SIZE) + 1}" }
  end

  def check(paths)
    { FIRST => NUMBER_FIRST, LATE => NUMBER_LATE }.each do |one, other|
      data = [one, other].map { |name| JSON.parse(body(paths[name])).fetch("data") }
      abort "bench:cursor: #{one} differs from #{other}" unless data.uniq.one? && data.first.size == SIZE
    end
  end

  def body(path)
    status, _, body = @app.call(Rack::MockRequest.env_for(path))
    text = +""
    body.each { |bytes| text << bytes }
    status == 200 ? text : abort("bench:cursor: #{path}: #{text}")
  end

  def ratio = @paired.times(FIRST, LATE)

  def figures
    { bench: "cursor", rows: ROWS, ms: @paired.names.to_h { |name| [name, @paired.ms(name)] }, times: ratio.median.round(3) }
  end

  def report
    <<~MARKDOWN
      # Pages far into a list

      #{ROWS} events on PostgreSQL, #{SIZE} on a page, ordered by a column with ties; `rake bench:cursor`, Ruby #{RUBY_VERSION},
      medians of #{ROUNDS} rounds in this process. Pages of one place have equal data.

      | page | ms |
      |---|---|
      #{@paired.names.map { |name| "| #{name} | #{@paired.ms(name).round(2)} |" }.join("\n")}

      The late page by cursor takes #{ratio.median.round(2)} times the first one (goal: at most #{GOAL}); the late page by number takes
      #{@paired.times(NUMBER_FIRST, NUMBER_LATE).median.round(1)} times its first one.
    MARKDOWN
  end
end

CursorBenchmark.new.run
