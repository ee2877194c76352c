# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "castellan/rows"

# StatementTables returns a superset of the tables that a statement reads, or refuses it as uncertain.
module StatementTablesContract
  def setup
    super
    connect
    run_sql("CREATE TABLE users (id integer PRIMARY KEY, name text, created_at timestamp)")
    %w[roles posts Odd].each { |table| run_sql(%(CREATE TABLE "#{table}" (id integer PRIMARY KEY, user_id integer))) }
    run_sql("CREATE VIEW people AS SELECT id, name FROM users")
    @rows = Castellan::Rows.for(model)
  end

  def test_every_table_of_every_kind_of_statement_is_found
    {
      "SELECT * FROM users" => %w[users],
      "select count(*) from Users AS u, roles AS r WHERE u.id = r.user_id" => %w[roles users],
      %(SELECT 1 FROM users CROSS JOIN (SELECT 1 FROM "posts") "p") => %w[posts users],
      %(SELECT id FROM "Odd") => %w[Odd],
      "SELECT id FROM users WHERE id IN (SELECT user_id FROM roles) AND EXISTS (SELECT 1 FROM posts)" => %w[posts roles users],
      "WITH r AS (SELECT user_id FROM roles) SELECT * FROM users WHERE id IN (SELECT user_id FROM r)" => %w[roles users],
      "SELECT id FROM users UNION SELECT user_id FROM posts" => %w[posts users],
      "SELECT lower(name), max(id) FROM users WHERE name LIKE 'a\\_%' AND name <> 'it''s FROM posts' GROUP BY 1" => %w[users],
      "SELECT users.id FROM users LEFT JOIN roles ON roles.id = users.id" => %w[roles users],
      "SELECT id FROM users WHERE 1 = 0 AND id IN (SELECT id FROM roles)" => %w[roles users]
    }.each { |sql, tables| assert_equal tables, Array(tables(sql)).sort, "#{sql}: #{tables(sql)}" }
  end

  def test_uncertain_statements_are_refused_with_the_reason
    {
      "SELECT id FROM people" => "people is no",
      "SELECT id FROM users WHERE created_at < CURRENT_TIMESTAMP" => "CURRENT_TIMESTAMP",
      "SELECT id, random() FROM users" => "random",
      %(SELECT id, "random"() FROM users) => "random",
      "SELECT id FROM users -- and posts" => "a comment",
      "SELECT id /* ' */ FROM users WHERE name = ' */ FROM posts'" => "a comment"
    }.each { |sql, reason| assert_includes tables(sql), reason, sql }
  end

  def test_like_with_a_backslash_as_escape_character_is_certain
    assert_equal %w[users], tables(%q(SELECT id FROM users WHERE (name LIKE '%a\_''%' ESCAPE '\') AND name <> 'b'))
    assert_includes tables(%q(SELECT id FROM users WHERE name = '\' AND name <> 'b')), "an escape string"
    assert_includes tables(%q(SELECT id FROM users WHERE name LIKE 'a' ESCAPE '\'' FROM posts')), "an escape string"
  end

  def test_statements_that_differ_in_values_only_are_analysed_once
    count = count_statements do
      5.times { |i| assert_equal %w[users], tables("SELECT id FROM users WHERE id = #{i} AND name = 'n#{i}'") }
      assert_equal %w[posts], tables("SELECT id FROM posts WHERE id = 1")
    end
    once = count_statements { tables("SELECT id FROM roles") }
    assert_equal 2 * once, count
  end

  private

  def tables(sql) = @rows.scopes.statement_tables(sql)
end

module StatementTablesOnPostgres
  def setup
    needs :postgres
    super
  end

  def test_an_operator_of_the_application_is_refused
    run_sql("CREATE FUNCTION posted(text, text) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT 1 FROM posts)'")
    run_sql("CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = posted)")
    assert_includes tables("SELECT id FROM users WHERE name==='a'"), "it calls ==="
    assert_includes tables("SELECT id FROM users WHERE name OPERATOR(public.===) 'a'"), "it calls ==="
    assert_equal %w[users], tables("SELECT id FROM users WHERE name = 'a'")
  end

  def test_uncertain_statements_of_postgresql_are_refused
    run_sql("CREATE FUNCTION now_of(u users) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'")
    run_sql(%(CREATE FUNCTION "odd name"() RETURNS integer LANGUAGE sql AS 'SELECT count(*)::integer FROM posts'))
    run_sql("CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM users")
    {
      "SELECT E'\\'', id FROM users WHERE name = E'\\' FROM posts'" => "an escape string",
      "SELECT $$ ' $$, id FROM users" => "a dollar-quoted string",
      "SELECT $a$ ' $a$, id FROM users" => "a dollar-quoted string",
      %(SELECT id FROM U&"\\0075sers") => "an escaped name",
      "SELECT id FROM users WHERE created_at > 'today'" => "the string 'today'",
      "SELECT id FROM users WHERE created_at > timestamp ' NOW '" => "the string ' NOW '",
      "SELECT id FROM users WHERE created_at > now()" => "it calls now",
      "SELECT users.now_of FROM users" => "it calls now",
      %(SELECT "odd name"() FROM users) => "it calls odd name",
      "SELECT n FROM counts" => "counts is no table",
      "SELECT query_to_xml('SELECT 1 FROM posts', true, true, '') FROM users" => "it calls query_to_xml",
      "SELECT user FROM users" => "the word USER"
    }.each { |sql, reason| assert_includes tables(sql), reason, sql }
  end

  def test_an_interrupted_analysis_leaves_the_transaction_as_it_was
    blocker = PG.connect(@url)
    in_transaction do |connection|
      blocker.exec("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
      assert_raises(Timeout::Error) { Timeout.timeout(0.2) { tables("SELECT id FROM users") } }
      blocker.exec("ROLLBACK")
      assert_equal PG::PQTRANS_INTRANS, connection.transaction_status
      error = assert_raises(PG::Error) { connection.exec("RELEASE SAVEPOINT castellan_explain") }
      assert_includes error.message, "does not exist"
    end
  ensure
    blocker&.close
  end

  def test_a_refused_statement_leaves_the_transaction_as_it_was
    in_transaction do |connection|
      assert_includes tables("SELECT no_such_column FROM users"), "the database refuses it"
      assert_equal PG::PQTRANS_INTRANS, connection.transaction_status
      assert_equal %w[users], tables("SELECT id FROM users")
    end
  end

  def test_expressions_whose_value_changes_with_the_time_are_refused
    {
      "created_at < ('n'||'ow')::timestamptz" => "a cast to timestamptz",
      "created_at < CAST('n' || 'ow' AS timestamp)" => "a cast",
      "created_at < CAST(('to'||'day') AS \"date\")" => "a cast",
      "created_at < name::pg_catalog.timestamptz" => "a cast to pg_catalog",
      "created_at < 'now'::text::timestamp" => "the string 'now'",
      "created_at < ('{' || 'n' || 'ow}')::timestamp[]" => "a cast to timestamp",
      "created_at < date 'to'\n'day'" => "adjacent strings",
      "created_at < timestamp 'now12:00'" => "the string 'now12:00'",
      "created_at < (SELECT a FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS a timestamp PATH '.'))" => "the word XMLTABLE",
      "id IN (SELECT id FROM roles FOR UPDATE SKIP LOCKED)" => "SKIP LOCKED"
    }.each { |condition, reason| assert_includes tables("SELECT id FROM users WHERE #{condition}"), reason, condition }
  end

  def test_constants_of_any_type_and_casts_to_plain_types_are_certain
    ["created_at < '2026-01-01'::timestamptz", "created_at < timestamp '2026-01-01 10:00'", "created_at < CAST('2026-01-01' AS date)",
     "created_at::text = name::varchar(20)", "id::numeric = ANY('{1,2}'::bigint[])", "CAST(name || 'x' AS text) IS NULL"]
      .each { |condition| assert_equal %w[users], tables("SELECT id FROM users WHERE #{condition}"), condition }
  end

  def test_tables_of_other_schemas_and_partitions_are_named
    run_sql("CREATE SCHEMA billing")
    run_sql("CREATE TABLE billing.invoices (id integer, year integer) PARTITION BY LIST (year)")
    run_sql("CREATE TABLE billing.invoices_1 PARTITION OF billing.invoices FOR VALUES IN (1)")
    assert_equal %w[billing.invoices users], tables(%(SELECT 1 FROM "billing"."invoices" i JOIN users USING (id) WHERE year = 1)).sort
    ["billing.invoices.id", %("billing"."invoices"."id")].each do |column|
      assert_equal %w[billing.invoices], tables("SELECT #{column} FROM billing.invoices WHERE #{column} = 1")
    end
    database = URI(@url).path.delete_prefix("/")
    assert_equal %w[billing.invoices], tables(%(SELECT 1 FROM "#{database}".billing.invoices))
  end

  def test_row_level_security_is_refused
    run_sql("ALTER TABLE roles ENABLE ROW LEVEL SECURITY")
    assert_includes tables("SELECT id FROM roles"), "row-level security"
  end
end

module StatementTablesOnSQLite
  def test_uncertain_statements_of_sqlite_are_refused
    run_sql("CREATE TABLE [it's] (id integer)")
    run_sql("CREATE TEMP TABLE mine (id integer)")
    run_sql("ATTACH ':memory:' AS elsewhere")
    run_sql("CREATE TABLE elsewhere.posts (id integer)")
    {
      "SELECT 1 FROM [it's], posts WHERE 'x' = ''" => "a name in brackets",
      "SELECT id FROM mine" => "database temp",
      "SELECT id FROM elsewhere.posts" => "elsewhere",
      "SELECT id FROM users WHERE created_at < datetime('now')" => "datetime",
      "SELECT type FROM sqlite_master" => "sqlite_master is no plain table"
    }.each { |sql, reason| assert_includes tables(sql), reason, sql }
    assert_equal %w[users], tables("SELECT users.id FROM users, json_each('[1]') ids WHERE users.id = ids.value")
  end

  def test_the_authorizer_of_the_application_is_restored
    raw = raw_connection
    raw.authorizer = ->(*) { 0 }
    before = raw.instance_variable_get(:@authorizer)
    assert_equal %w[users], tables("SELECT id FROM users")
    assert_same before, raw.instance_variable_get(:@authorizer)
  end
end

module StatementTablesOnActiveRecord
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class User < Base
    self.table_name = "users"
  end

  def teardown
    Base.remove_connection
    super
  end

  private

  def connect
    Base.establish_connection(configuration)
    User.reset_column_information
  end

  def model = User
  def run_sql(sql) = Base.connection.execute(sql)
  def raw_connection = Base.connection.raw_connection

  def in_transaction
    Base.transaction { yield(raw_connection) && raise(ActiveRecord::Rollback) }
  end

  def count_statements
    count = 0
    ActiveSupport::Notifications.subscribed(->(*) { count += 1 }, "sql.active_record") { yield }
    count
  end
end

module StatementTablesOnSequel
  def teardown
    forget(@database)
    super
  end

  private

  def connect = @database = Sequel.connect(configuration, max_connections: 1)
  def model = @database[:users]
  def run_sql(sql) = @database.run(sql)
  def raw_connection = @database.synchronize { |raw| raw }

  def in_transaction
    @database.transaction { yield(raw_connection) && raise(Sequel::Rollback) }
  end

  def count_statements
    log = StringIO.new
    @database.loggers << Logger.new(log)
    yield
    log.string.lines.size
  ensure
    @database.loggers.clear
  end
end

class StatementTablesActiveRecordPostgresTest < Minitest::Test
  include StatementTablesContract
  include StatementTablesOnPostgres
  include StatementTablesOnActiveRecord

  private

  def configuration = @url ||= Castellan::TestServers.postgres_url
end

class StatementTablesActiveRecordSQLiteTest < Minitest::Test
  include StatementTablesContract
  include StatementTablesOnSQLite
  include StatementTablesOnActiveRecord

  private

  def configuration = { adapter: "sqlite3", database: ":memory:" }
end

class StatementTablesSequelPostgresTest < Minitest::Test
  include StatementTablesContract
  include StatementTablesOnPostgres
  include StatementTablesOnSequel

  private

  def configuration = @url ||= Castellan::TestServers.postgres_url
end

class StatementTablesSequelSQLiteTest < Minitest::Test
  include StatementTablesContract
  include StatementTablesOnSQLite
  include StatementTablesOnSequel

  private

  def configuration = "sqlite:/"
end
