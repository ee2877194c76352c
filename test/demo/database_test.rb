# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"
require "stringio"

class DatabaseTest < Minitest::Test
  Database = Castellan::Demo::Database

  def test_without_a_url_it_is_sqlite_and_no_process_inherits_another
    [nil, ""].each do |url|
      database = Database.chosen(url, StringIO.new)
      assert_equal [{ "DATABASE_URL" => nil }, "SQLite"], [database.environment, database.to_s]
    end
  end

  def test_without_a_server_it_prints_how_to_install_one_and_uses_sqlite
    out = StringIO.new
    database = Database.chosen("postgres://ada:secret@127.0.0.1:#{free_port}/x", out)
    assert_nil database.environment.fetch("DATABASE_URL")
    assert_match(%r{no database server at DATABASE_URL \(postgres://127\.0\.0\.1:\d+/x\)}, out.string)
    assert_match(/On Debian: apt-get install postgresql.*Going on with SQLite/, out.string)
    refute_includes out.string, "secret"
  end

  def test_messages_do_not_contain_the_password
    { "postgres://ada:s@cret@db.example/x" => "postgres://db.example/x", "postgres:///x?user=ada&password=secret&a=b" =>
      "postgres:///x?user=ada&password=…&a=b" }.each { |url, told| assert_equal told, Database.new(url).to_s }
  end

  def test_a_server_that_listens_is_taken
    server = TCPServer.new("127.0.0.1", 0)
    url = "postgres://127.0.0.1:#{server.addr[1]}/x"
    assert_equal url, Database.chosen(url, StringIO.new).url
  ensure
    server&.close
  end

  def test_an_sqlite_file_is_taken_as_it_is
    assert_equal "sqlite3:/x/y.sqlite3", Database.chosen("sqlite3:/x/y.sqlite3", StringIO.new).url
  end

  def test_a_database_that_the_examples_do_not_know_is_refused
    error = assert_raises(Castellan::ConfigurationError) { Database.chosen("mysql2://localhost/x", StringIO.new) }
    assert_includes error.message, "not mysql2:"
  end

  def test_only_a_missing_database_on_a_server_falls_back_to_sqlite
    out = StringIO.new
    database = Database.new("postgres://localhost/x")
    missing = Castellan::Error.new("bin/setup: FATAL: database \"x\" does not exist")
    assert_nil database.instead(missing, out).url
    assert_includes out.string, "Going on with SQLite"
    other = Castellan::Error.new("bin/setup: bundle install failed")
    assert_same(other, assert_raises(Castellan::Error) { database.instead(other, out) })
    assert_same(missing, assert_raises(Castellan::Error) { Database.new(nil).instead(missing, out) })
  end
end
