# frozen_string_literal: true

require "test_helper"
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

  def test_of_sequel_on_sqlite
    books = sequel[:books]
    assert_equal([BOOKS, 1, 0], rows { [books.all, books.first, books.where(id: -1).all] })
    assert_equal([3, 2, 12], rows { [books.limit(3).select_map(:id), books.limit(2).each { nil }, books.as_hash(:id)] })
    assert_equal([nil, nil], rows { [books.insert(title: "one more"), books.where(id: 1).update(title: "x")] })
  end

  def test_of_statements_within_each_other_on_sqlite
    books = sequel[:books].order(:id)
    within = rows { books.limit(4).each { |book| sequel[:authors].where(id: [book[:author_id], 1]).all } }
    assert_equal [4, 1, 2, 2, 2], within
  end

  def test_of_a_prepared_statement_of_sequel_on_sqlite
    prepared = sequel[:books].where { id <= :$most }.prepare(:select, :until_id)
    answer = nil
    assert_equal([5, nil], rows { [answer = prepared.call(most: 5), sequel[:books].insert] }) # what prepares is no query
    assert_equal 5, answer.size
  end

  def test_what_was_read_is_of_one_statement
    assert_equal([2, nil], rows { [sequel.execute("SELECT id FROM books LIMIT 2") { |results| results.count }, sequel[:books].insert] })
  end

  def test_who_reads_the_results_of_sequel_on_sqlite_gets_what_it_made_of_them
    read = ->(results) { [results.next.first, results.map(&:first), results.class] }
    told = nil
    assert_equal([3], rows { told = sequel.execute("SELECT id FROM books ORDER BY id LIMIT 3", &read) })
    assert_equal [1, [2, 3], SQLite3::ResultSet], told
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
    assert_equal([nil, nil], rows { [database.query("SELECT 1", &:to_a), database.execute_batch("SELECT 1, 2")] })
  ensure
    database&.close
  end

  def test_a_row_that_nobody_reads_is_none
    assert_equal([2], rows { sequel[:books].order(:id).each { |book| break if book[:id] == 2 } })
  end

  def test_who_records_without_a_timeline_reads_rows_as_they_are
    counted = nil
    Castellan::Instrument.record(Castellan::Instrument::Counter.new) do
      sequel.execute("SELECT 1") { |results| counted = results.is_a?(Castellan::Instrument::RowCount::Counted) }
    end
    refute counted
  end

  private

  # @return [Array<Integer, nil>] of each statement
  def rows(&block) = Castellan::Profile.run(&block).queries.map { |query| query[:rows] }

  def failing
    assert_raises(PG::Error) { yield }
  end
end
