# frozen_string_literal: true

require "test_helper"
require "active_record"
require "pg"
require "sequel"
Castellan::Resource && Castellan::Rows

class PostgresStatementsTest < Minitest::Test
  SQL = "SELECT name FROM things WHERE id = ANY($1::bigint[]) ORDER BY id"

  def setup
    needs :postgres
    @url = Castellan::TestServers.postgres_url
    @connection = PG.connect(@url)
    @connection.exec("CREATE TABLE things (id bigint PRIMARY KEY, name varchar(20)); INSERT INTO things VALUES (1, 'one'), (2, 'two')")
  end

  def teardown
    @model&.connection_pool&.disconnect!
    @connection&.close unless @connection&.finished?
  end

  def test_a_query_is_prepared_at_its_second_use
    assert_equal [["one"]], read
    assert_empty prepared
    assert_equal [["one"]], read
    assert_equal [["two"]], read(2)
    assert_equal [SQL], prepared
  end

  def test_statements_that_are_not_kept_are_never_prepared
    3.times { driver.rows(@connection, SQL, [1]) }
    assert_empty prepared
  end

  def test_a_long_list_of_ids_gets_its_own_plan
    3.times { assert_equal [["one"], ["two"]], driver.rows(@connection, SQL, (1..101).to_a, prepared: true).values }
    assert_empty prepared
  end

  def test_up_to_2000_indexed_ids_are_prepared
    rows = ->(ids) { driver.rows(@connection, SQL, ids, prepared: true, indexed: true).values }
    3.times { assert_equal [["one"], ["two"]], rows.call((1..2_001).to_a) }
    assert_empty prepared
    3.times { assert_equal [["one"], ["two"]], rows.call((1..2_000).to_a) }
    assert_equal [SQL], prepared
  end

  def test_a_long_query_is_not_kept
    long = "#{SQL} -- #{"x" * 4_000}"
    3.times { driver.rows(@connection, long, [1], prepared: true) }
    assert_empty prepared
  end

  def test_no_more_are_kept_than_the_limit
    limit = Castellan::PostgresStatements::LIMIT
    (limit + 10).times { |index| 2.times { driver.rows(@connection, "SELECT #{index}", nil, prepared: true) } }
    assert_equal limit, prepared.size
    assert_equal limit, statements.size
    refute_includes prepared, "SELECT 0"
  end

  def test_no_statement_is_deallocated_inside_a_transaction
    limit = Castellan::PostgresStatements::LIMIT
    limit.times { |index| driver.rows(@connection, "SELECT #{index}", nil, prepared: true) }
    @connection.transaction { 3.times { assert_equal [["one"]], read } }
    assert_equal limit, statements.size
    assert_empty prepared
  end

  def test_statements_that_the_server_dropped_are_prepared_again
    2.times { read }
    @connection.exec("DISCARD ALL")
    assert_equal [["one"]], read
    2.times { assert_equal [["one"]], read }
    assert_equal [SQL], prepared
  end

  def test_a_reset_connection_prepares_its_statements_again
    2.times { read }
    before = statements
    @connection.reset
    @connection.transaction { assert_equal [["one"]], read }
    refute_same before, statements
  end

  def test_a_statement_name_in_use_is_skipped
    read
    @connection.prepare("castellan_#{Digest::SHA256.hexdigest(SQL)[0, 24]}_1", "SELECT 1")
    3.times { assert_equal [["one"]], read }
  end

  def test_a_changed_column_type_prepares_the_statement_again
    2.times { read }
    @connection.exec("ALTER TABLE things ALTER COLUMN name TYPE text")
    3.times { assert_equal [["one"]], read }
    assert_equal [SQL], prepared
  end

  def test_a_changed_column_inside_a_transaction_raises_the_error_of_active_record
    2.times { session { |session| session.rows(SQL, [1], kept: true) } }
    model.transaction do
      @connection.exec("ALTER TABLE things ALTER COLUMN name TYPE text")
      error = assert_raises(ActiveRecord::PreparedStatementCacheExpired) { session { |session| session.rows(SQL, [1], kept: true) } }
      assert_kind_of PG::Error, error.cause
      raise ActiveRecord::Rollback
    end
    assert_equal([["one"]], session { |session| session.rows(SQL, [1], kept: true).values })
  end

  def test_a_failed_transaction_raises_the_error_of_active_record
    4.times do |times|
      times.times { session { |session| session.rows(SQL, [1], kept: true) } }
      model.transaction do
        assert_raises(ActiveRecord::StatementInvalid) { model.connection.execute("SELECT no_such_column") }
        expected = assert_raises(ActiveRecord::StatementInvalid) { model.connection.execute("SELECT 1") }
        error = assert_raises(ActiveRecord::StatementInvalid) { session { |session| session.rows(SQL, [1], kept: true) } }
        assert_equal [expected.class, expected.cause.class], [error.class, error.cause.class]
        raise ActiveRecord::Rollback
      end
    end
  end

  def test_prepared_statements_false_of_active_record_applies
    model(prepared_statements: false)
    3.times { session { |session| session.rows(SQL, [1], kept: true) } }
    assert_empty prepared(model.connection.raw_connection)
  end

  def test_unprepared_statement_of_active_record_applies
    model.connection.unprepared_statement { 3.times { session { |session| session.rows(SQL, [1], kept: true) } } }
    assert_empty prepared(model.connection.raw_connection)
  end

  def test_a_query_that_differs_each_time_is_not_prepared
    ActiveRecord.query_transformers << ->(sql, _connection) { "#{sql} /* #{rand} */" }
    3.times { session { |session| session.rows(SQL, [1], kept: true) } }
    assert_empty prepared(model.connection.raw_connection)
  ensure
    ActiveRecord.query_transformers.pop
  end

  def test_sequel_prepares_with_and_without_the_plugin
    database = Sequel.connect(@url)
    [true, false].each do |plugin|
      thing = Class.new(Sequel::Model(database[:things]))
      thing.plugin(:prepared_statements) if plugin
      3.times { Castellan::Rows.for(thing).session { |session| session.rows(SQL, [1], kept: true) } }
      database.synchronize do |connection|
        assert_equal [SQL], prepared(connection)
        connection.exec("DISCARD ALL")
      end
    end
  ensure
    forget(database)
  end

  private

  def driver = Castellan::Rows::PostgresDriver

  def read(id = 1)
    driver.rows(@connection, SQL, [id], prepared: true).values
  end

  def statements
    Castellan::PostgresStatements.for(@connection)
  end

  def prepared(connection = @connection)
    connection.exec("SELECT statement FROM pg_prepared_statements WHERE name LIKE 'castellan_%'").column_values(0)
  end

  def model(**options)
    @model ||= Class.new(ActiveRecord::Base) { self.abstract_class = true }.tap do |base|
      self.class.const_set("Base#{object_id}", base)
      base.establish_connection(url: @url, **options)
      self.class.const_set("Thing#{object_id}", Class.new(base) { self.table_name = "things" })
    end
  end

  def session(&block)
    model
    Castellan::Rows.for(self.class.const_get("Thing#{object_id}")).session(&block)
  end
end
