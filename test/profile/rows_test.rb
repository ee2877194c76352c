# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/drivers"
require "profile/profile_world"
require "pg"
require "sqlite3"

# How many rows each statement of a profile gave back, by the driver that it was sent through. A write gives back what it RETURNs.
class ProfileRowsTest < Minitest::Test
  include ProfileWorld

  # With a connection of its own.
  class OnPostgres < ActiveRecord::Base
    self.abstract_class = true
  end

  def test_of_active_record_on_sqlite
    assert_equal [BOOKS, 1, 1], rows { [Book.order(:id).to_a, Book.find(1), Book.count] }
    assert_equal([0, 0], rows { [Book.where(id: 1).update_all(title: "again"), Book.where(id: -1).to_a] })
  end

  def test_of_active_record_on_postgres
    needs :postgres
    OnPostgres.establish_connection(Castellan::TestServers.postgres_url)
    OnPostgres.connection.create_table(:things) { |table| table.string(:name) }
    things = Class.new(OnPostgres) { self.table_name = "things" }
    things.reset_column_information
    things.create!(name: "first")
    work = -> { [things.create!(name: "a"), things.find(1), things.where(name: "a").to_a, things.update_all(name: "b")] }
    assert_equal [1, 1, 1, 0], rows(&work)
  ensure
    forget(OnPostgres)
  end

  def test_of_sequel_on_sqlite_they_are_unknown
    books = sequel[:books]
    assert_equal([nil, nil], rows { [books.all, books.insert(title: "one more")] })
  end

  def test_of_sequel_on_postgres
    needs :postgres
    database = Sequel.connect(Castellan::TestServers.postgres_url)
    things = database[:things]
    database.create_table(:things) { primary_key :id }
    things.insert # asks for the primary key once
    prepared = things.where { id <= :$most }.prepare(:select, :until_id)
    assert_equal([1, 2, 0, 1], rows { [things.insert, things.order(:id).all, things.where(id: 1).delete, things.all] })
    assert_includes rows { prepared.call(most: 2) }, 1
  ensure
    forget(database)
  end

  def test_of_pg_itself
    needs :postgres
    connection = PG.connect(Castellan::TestServers.postgres_url)
    connection.exec("CREATE TEMPORARY TABLE things (id serial)")
    connection.prepare("two", "SELECT generate_series(1, $1)")
    assert_equal([1, 3], rows { [connection.exec("SELECT 1"), connection.exec_params("SELECT generate_series(1, $1)", [3])] })
    assert_equal([2], rows { connection.exec_prepared("two", [2]) })
    assert_equal([0, 1], rows { ["", "RETURNING id"].each { |rest| connection.exec("INSERT INTO things DEFAULT VALUES #{rest}") } })
    assert_equal([nil, nil], rows { [connection.exec("SELECT 1") { |result| result }, failing { connection.exec("SELECT nothing") }] })
  ensure
    connection&.close
  end

  def test_of_sqlite3_itself
    database = SQLite3::Database.new(@file)
    read = []
    assert_equal([BOOKS], rows { database.execute("SELECT id FROM books") })
    assert_equal([2], rows { database.execute("SELECT 1, 2 UNION SELECT 3, 4") { |one, two| read << [one, two] } })
    assert_equal [[1, 2], [3, 4]], read
    assert_equal([nil], rows { database.query("SELECT 1", &:to_a) })
  ensure
    database&.close
  end

  private

  # @return [Array<Integer, nil>] of each statement
  def rows(&block) = Castellan::Profile.run(&block).queries.map { |query| query[:rows] }

  def failing
    assert_raises(PG::Error) { yield }
  end
end
