# frozen_string_literal: true

require "test_helper"
require "sequel"
require "pg"
require "uri"
require "castellan/rows"
require_relative "../../support/stalling_proxy"

# Sequel's statements are prepared and sent together on a connection of its own server process alone.
class SequelSessionTest < Minitest::Test
  SQL = "SELECT n FROM unnest($1::bigint[]) n ORDER BY n"
  # The message BackendKeyData: a process and a secret, four bytes each.
  PROCESS = /K\0\0\0\x0c.{4}/mn

  def setup
    needs :postgres
    skip "this pg has no pipelines" unless Castellan::Rows::PostgresDriver::Pipeline.possible?
    @databases = []
  end

  def teardown
    @databases&.each do |database|
      database.disconnect
      Sequel::DATABASES.delete(database)
    end
    @proxy&.close
  end

  def test_statements_that_repeat_are_prepared_and_sent_in_one_trip
    session(database(Castellan::TestServers.postgres_url)) do |session, database|
      3.times { assert_equal 1, trips { assert_read session } }
      assert_equal 1, prepared(database)
    end
  end

  def test_behind_a_pooler_each_statement_is_sent_by_itself_and_unprepared
    url = Castellan::TestServers.postgres_url
    @proxy = Castellan::StallingProxy.new(URI(url).port) { |bytes| bytes.sub(PROCESS) { "K\0\0\0\x0c\x7f\xff\xff\xff".b } }
    session(database(url.sub(/:#{URI(url).port}\b/, ":#{@proxy.port}"))) do |session, database|
      3.times { assert_equal 0, trips { assert_read session } }
      assert_equal 0, prepared(database)
    end
  end

  def test_a_failing_query_leaves_the_connection_usable
    session(database(Castellan::TestServers.postgres_url)) do |session, _|
      2.times { assert_read session }
      assert_raises(Sequel::DatabaseError) { session.read([query("SELECT 1 / (id - 1) FROM generate_series(1, 1) id"), query("SELECT 1")]) }
      assert_read session
    end
  end

  def test_every_query_of_a_trip_is_logged
    database = database(Castellan::TestServers.postgres_url)
    log = StringIO.new
    database.loggers << Logger.new(log)
    session(database) { |session, _| assert_read session }
    assert_includes log.string, SQL
    assert_includes log.string, "SELECT 1 = 2"
  end

  private

  def database(url)
    Sequel.connect(url, max_connections: 1).tap { |database| @databases << database }
  end

  def session(database)
    Castellan::Rows::SequelRows::Session.open(database, Castellan::Rows::Dialect.for(:postgres)) { |session| yield session, database }
  end

  def query(sql, ids = nil)
    Castellan::Rows::Reading::Query.new(nil, sql, ids, true)
  end

  def assert_read(session)
    queries = [query(SQL, [3, 2]), query("SELECT 1 = 2")]
    session.read(queries)
    assert_equal [[%w[2], %w[3]], [%w[f]]], queries.map { |one| one.rows.values }
  end

  def prepared(database)
    database.get(Sequel.lit("(SELECT count(*) FROM pg_prepared_statements WHERE statement = ?)", SQL))
  end

  def trips(&block)
    count = 0
    trace = TracePoint.new(:c_call) { |point| count += 1 if point.method_id == :enter_pipeline_mode }
    trace.enable(&block)
    count
  end
end
