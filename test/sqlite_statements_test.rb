# frozen_string_literal: true

require "test_helper"
require "sqlite3"
require "active_record"
require "sequel"
Castellan::Resource && Castellan::Rows

class SqliteStatementsTest < Minitest::Test
  SQL = "SELECT name FROM things WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"

  def setup
    @connection = SQLite3::Database.new(":memory:")
    @connection.execute_batch("CREATE TABLE things (id integer PRIMARY KEY, name text); INSERT INTO things VALUES (1, 'one'), (2, 'two')")
  end

  def teardown
    @connection.close
  end

  def test_a_repeated_query_is_compiled_twice_at_most
    compiled = compiling { 5.times { |index| assert_equal [[%w[one two][index % 2]]], statements.rows(SQL, "[#{(index % 2) + 1}]") } }
    assert_equal [keeps? ? 2 : 5, keeps? ? 1 : 0], [compiled, statements.size]
  end

  def test_a_kept_statement_holds_no_lock
    3.times { statements.rows(SQL, "[1,2]") }
    @connection.execute("INSERT INTO things VALUES (3, 'three')")
    @connection.execute("ALTER TABLE things ADD COLUMN label text")
    assert_equal [["three"]], statements.rows(SQL, "[3]")
    @connection.execute("DROP TABLE things")
    assert_raises(SQLite3::SQLException) { statements.rows(SQL, "[3]") }
  end

  def test_a_kept_statement_reads_new_columns_after_a_migration
    3.times { statements.rows("SELECT * FROM things") }
    @connection.execute("ALTER TABLE things ADD COLUMN label text")
    assert_equal [[1, "one", nil], [2, "two", nil]], statements.rows("SELECT * FROM things")
  end

  def test_kept_statements_have_a_limit_and_long_queries_are_not_kept
    limit = keeps? ? Castellan::SqliteStatements::LIMIT : 0
    (Castellan::SqliteStatements::LIMIT + 10).times { |index| 2.times { assert_equal [[index]], statements.rows("SELECT #{index}") } }
    assert_equal limit, statements.size
    2.times { statements.rows("SELECT 1 /* #{"x" * 4_000} */") }
    assert_equal limit, statements.size
  end

  def test_prepared_statements_false_of_active_record_applies
    [[true, keeps? ? 1 : 0], [false, 0]].each do |prepared, kept|
      base = Class.new(ActiveRecord::Base) { self.abstract_class = true }
      self.class.const_set("Base#{object_id}#{prepared}", base)
      base.establish_connection(adapter: "sqlite3", database: ":memory:", prepared_statements: prepared)
      base.connection.execute("CREATE TABLE things (id integer PRIMARY KEY, name text)")
      model = self.class.const_set("Thing#{object_id}#{prepared}", Class.new(base) { self.table_name = "things" })
      Castellan::Rows.for(model).session { |session| 3.times { session.rows(SQL, [1], kept: true) } }
      assert_equal kept, Castellan::SqliteStatements.for(base.connection.raw_connection).size
      forget(base)
    end
  end

  def test_associations_with_blocks_are_compiled_by_their_sql
    database = Sequel.sqlite
    database.create_table(:things) do
      primary_key :id
      Integer :owner_id
    end
    things = Class.new(Sequel::Model(database[:things]))
    things.one_to_many(:parts, class: things, key: :owner_id) { |parts| parts.reverse(:id) }
    3.times { |id| things.insert(id: id + 1, owner_id: 1) }
    resource = Class.new(Castellan::Resource) { model(things) && type("things") && has_many(:parts, resource: self) }
    3.times { resource.render(things.order(:id), include: %w[parts]) }
    database.synchronize do |connection|
      @connection = connection
      assert_equal(keeps? ? 0 : 2, compiling { resource.render(things.order(:id), include: %w[parts]) })
    end
  ensure
    forget(database)
  end

  private

  # Depends on the version of sqlite3: statements are kept from version 2 on.
  def keeps? = Castellan::SqliteStatements.keeps?
  def statements = Castellan::SqliteStatements.for(@connection)

  def compiling(&)
    count = 0
    trace = TracePoint.new(:c_call, :call) { |point| count += 1 if point.method_id == :prepare && point.self.equal?(@connection) }
    trace.enable(&)
    count
  end
end
