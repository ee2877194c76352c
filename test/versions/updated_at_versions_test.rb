# frozen_string_literal: true

require "test_helper"
require "sequel"

class UpdatedAtVersionsTest < Minitest::Test
  Dependency = Castellan::Versions::Dependency

  def test_count_and_newest_date_change_the_token_on_sqlite
    check(Sequel.sqlite)
  end

  def test_count_and_newest_date_change_the_token_on_postgres
    needs :postgres
    check(Sequel.connect(Castellan::TestServers.postgres_url))
  end

  def test_a_missing_column_or_table_is_named
    database = Sequel.sqlite
    database.run("CREATE TABLE logs (id integer)")
    versions = Castellan::Versions::UpdatedAtVersions.new(database)
    assert_match(/updated_at.*use ExactVersions/, assert_raises(Castellan::ConfigurationError) { current(versions, "logs") }.message)
    assert_match(/no such table/, assert_raises(Castellan::ConfigurationError) { current(versions, "none") }.message)
    assert_match(/\A0-@/, Castellan::Versions::UpdatedAtVersions.new(database, column: :id).current([Dependency.new("logs")]))
  ensure
    forget(database)
  end

  def test_a_database_that_times_out_has_no_version
    needs :postgres
    url = Castellan::TestServers.postgres_url
    database, other = Array.new(2) { Sequel.connect(url) }
    database.run("CREATE TABLE posts (id integer PRIMARY KEY, updated_at timestamp)")
    versions = Castellan::Versions::UpdatedAtVersions.new(database)
    other.transaction do
      other.run("LOCK TABLE posts")
      database.synchronize do
        database.run("SET statement_timeout = 20")
        assert_nil current(versions, "posts")
      end
    end
    assert_match(/\A0-@/, current(versions, "posts"))
  ensure
    [database, other].each { |one| forget(one) }
  end

  private

  def check(database)
    database.run("CREATE TABLE posts (id integer PRIMARY KEY, updated_at timestamp)")
    database.run("CREATE TABLE authors (id integer PRIMARY KEY, updated_at timestamp)")
    versions = Castellan::Versions::UpdatedAtVersions.new(database)
    tokens = [current(versions, "posts", "authors")]
    ["INSERT INTO posts VALUES (1, '2026-01-01 00:00:00')", "UPDATE posts SET updated_at = '2026-01-02 00:00:00'",
     "INSERT INTO authors VALUES (1, '2026-01-01 00:00:00')", "DELETE FROM posts"].each do |sql|
      database.run(sql)
      tokens << current(versions, "posts", "authors")
    end
    assert_equal 5, tokens.uniq.size, tokens.inspect
    assert_equal tokens.last, current(versions, "posts", "authors")
    assert_nil with_env("CASTELLAN" => "off") { current(versions, "posts") }
  ensure
    forget(database)
  end

  def current(versions, *tables) = versions.current(tables.map { |table| Dependency.new(table) })
end
