# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "pg"
require "sqlite3"
require "uri"
require_relative "exact_versions_contract"
require_relative "../support/stalling_proxy"

module ExactVersionsOnSQLite
  # The driver's own connection. Waits in Ruby, because SQLite's busy_timeout blocks all threads of the
  # process.
  class Program
    def initialize(path) = @database = SQLite3::Database.new(path).tap { |database| database.busy_handler { sleep(0.001) || true } }
    def run(sql) = @database.execute(sql)
    def close = @database.close
  end

  DROP = "DROP TRIGGER castellan_version_update_users"

  def teardown
    @other&.close
    super
    FileUtils.rm_rf(@dir)
  end

  def test_a_trigger_that_another_program_drops_is_noticed_at_once
    2.times { assert users }
    other.run("CREATE TABLE things (id integer)")
    2.times { assert users }
    other.run(DROP)
    2.times { assert_nil users }
    other.run("CREATE TABLE further_things (id integer)")
    2.times { assert_nil users }
    @versions.install(%w[users])
    2.times { assert users }
  end

  def test_reordered_columns_change_the_token
    run_sql("ALTER TABLE users ADD COLUMN title text DEFAULT 'x'")
    run_sql("INSERT INTO users VALUES (1, 'a', 'b')")
    3.times { assert_equal users, users }
    assert_changes do
      [%w[name old], %w[title name], %w[old title]].each { |from, to| other.run("ALTER TABLE users RENAME COLUMN #{from} TO #{to}") }
    end
  end

  def test_an_empty_versions_table_has_a_token_after_the_first_write
    run_sql("DELETE FROM castellan_versions")
    assert_nil users
    run_sql("INSERT OR IGNORE INTO users VALUES (1, 'a')")
    assert users
    assert_changes { run_sql("UPDATE OR IGNORE users SET name = 'b'") }
  end

  def test_triggers_are_read_again_after_a_rollback
    transaction(rollback: true) do
      run_sql(DROP)
      assert_nil users
    end
    2.times { assert users }
    other.run(DROP)
    assert_nil users
    transaction(rollback: true) do
      @versions.install(%w[users])
      2.times { assert users }
    end
    other.run("CREATE TABLE things (id integer)") # as many schema changes as in between
    2.times { assert_nil users }
  end

  # It keeps the change but skips the triggers that would run after it: the newest runs first.
  def test_another_trigger_that_ignores_what_follows_hides_no_change
    run_sql("INSERT INTO users VALUES (1, 'a')")
    run_sql("CREATE TRIGGER audit AFTER UPDATE ON users BEGIN SELECT RAISE(IGNORE); END")
    assert_changes { run_sql("UPDATE users SET name = 'b'") }
    assert_equal ["b"], names
  end

  def test_a_table_that_a_temporary_one_hides_has_no_token
    2.times { assert users }
    run_sql("CREATE TEMP TABLE Users (id integer)")
    2.times { assert_nil users }
    run_sql("DROP TABLE temp.users")
    2.times { assert users }
  end

  def test_columns_that_were_renamed_in_a_transaction_that_was_rolled_back_have_a_token_of_their_own
    run_sql("ALTER TABLE users ADD COLUMN title text")
    inside = nil
    transaction(rollback: true) do
      [%w[name old], %w[title name]].each { |from, to| run_sql("ALTER TABLE users RENAME COLUMN #{from} TO #{to}") }
      2.times { inside = users }
    end
    2.times { |n| other.run("CREATE TABLE things_#{n} (id integer)") } # as many schema changes
    2.times { refute_includes [nil, inside], users }
  end

  private

  # Uses a write-ahead log, as Rails does; without it a reader and a writer in one process can block each
  # other.
  def path
    @path ||= File.join(@dir = Dir.mktmpdir, "test.sqlite3").tap do |path|
      SQLite3::Database.new(path) { |database| database.execute("PRAGMA journal_mode = WAL") }
    end
  end

  def other = @other ||= Program.new(path)
end

module ExactVersionsOnPostgres
  # The driver's own connection.
  class Program
    def initialize(url) = @connection = PG.connect(url)
    def run(sql) = @connection.exec(sql).to_a
    def close = (@connection.close unless @connection.finished?)
  end

  def setup
    needs :postgres
    super
  end

  def teardown
    @others&.each(&:close)
    super
  end

  def test_truncate_changes_the_table
    run_sql("INSERT INTO users VALUES (1, 'a')")
    assert_changes { other.run("TRUNCATE users") }
  end

  def test_copy_and_cascades_change_the_token
    run_sql("CREATE TABLE tokens (id integer PRIMARY KEY, user_id integer REFERENCES users ON DELETE CASCADE)")
    @versions.install(%w[tokens])
    run_sql("INSERT INTO users VALUES (1, 'a')")
    run_sql("INSERT INTO tokens VALUES (1, 1)")
    token = current("tokens")
    other.run("DELETE FROM users")
    refute_equal token, current("tokens")
  end

  def test_writes_without_triggers_never_restore_an_old_token
    token = users
    other.run("ALTER TABLE users DISABLE TRIGGER ALL")
    assert_nil users
    other.run("INSERT INTO users VALUES (1, 'a')")
    other.run("ALTER TABLE users ENABLE TRIGGER ALL")
    assert_nil users, "a write under session_replication_role = replica would not run the trigger"
    other.run("ALTER TABLE users ENABLE ALWAYS TRIGGER castellan_version")
    refute_nil users
    refute_equal token, users
  end

  def test_disabling_and_enabling_in_one_transaction_changes_the_token
    assert_changes do
      other.run("BEGIN; ALTER TABLE users DISABLE TRIGGER castellan_version; INSERT INTO users VALUES (1, 'a'); " \
                "ALTER TABLE users ENABLE ALWAYS TRIGGER castellan_version; COMMIT")
    end
  end

  def test_writes_of_a_replication_role_change_the_token
    assert_changes { other.run("SET session_replication_role = replica; INSERT INTO users VALUES (1, 'a')") }
  end

  def test_a_change_of_columns_that_rewrites_values_changes_the_token
    run_sql("INSERT INTO users VALUES (1, 'a')")
    assert_changes { other.run("ALTER TABLE users ALTER COLUMN name TYPE text USING upper(name)") }
    assert_changes { other.run("ALTER TABLE users DROP COLUMN name, ADD COLUMN name text DEFAULT 'b'") }
  end

  def test_any_change_of_columns_changes_the_token
    run_sql("ALTER TABLE users ADD COLUMN title text")
    assert_changes { other.run("BEGIN; ALTER TABLE users DROP COLUMN name; ALTER TABLE users RENAME title TO name; COMMIT") }
    assert_changes { other.run("ALTER TABLE users ALTER name TYPE text COLLATE \"C\"") }
    run_sql("CREATE TABLE guests (visits integer) INHERITS (users)")
    @versions.install(%w[users])
    assert_changes { other.run("ALTER TABLE users RENAME name TO title") }
    assert_changes { other.run("ALTER TABLE guests RENAME visits TO name") }
  end

  # Replication does not run the triggers of statements. Its rows are written to the parent, if the publication says so.
  def test_a_table_that_a_subscription_writes_has_no_token
    run_sql("CREATE TABLE events (id integer, year integer) PARTITION BY LIST (year)")
    run_sql("CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1)")
    @versions.install(%w[events])
    tokens = -> { [users, current("roles"), current("events"), current("events_1")].map { |token| !token.nil? } }
    assert_equal [true, true, true, true], tokens.call
    other.run("INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT 1, oid, 'r' FROM pg_class " \
              "WHERE relname IN ('users', 'events')")
    assert_equal [false, true, false, false], tokens.call
  end

  def test_rows_of_inheriting_tables_count
    other.run("CREATE TABLE guests (visits integer) INHERITS (users)")
    assert_nil users, "the inheriting table has no trigger"
    @versions.install(%w[users])
    assert_changes { other.run("INSERT INTO guests VALUES (2, 'c', 1)") }
    assert_changes { other.run("ALTER TABLE guests NO INHERIT users") }
  end

  def test_partitions_count_whichever_table_is_written
    run_sql("CREATE TABLE events (id integer, year integer) PARTITION BY LIST (year)")
    run_sql("CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1)")
    run_sql("CREATE TABLE events_2 PARTITION OF events FOR VALUES IN (2) PARTITION BY LIST (id)")
    run_sql("CREATE TABLE events_2_3 PARTITION OF events_2 FOR VALUES IN (3)")
    @versions.install(%w[events])
    ["INSERT INTO events VALUES (1, 1)", "INSERT INTO events_1 VALUES (2, 1)", "INSERT INTO events_2_3 VALUES (3, 2)",
     "TRUNCATE events_2_3", "ALTER TABLE events DETACH PARTITION events_1"].each do |sql|
      token = current("events")
      other.run(sql)
      refute_nil current("events"), sql
      refute_equal token, current("events"), sql
    end
    other.run("CREATE TABLE events_4 AS SELECT 1 AS id, 4 AS year; ALTER TABLE events ATTACH PARTITION events_4 FOR VALUES IN (4)")
    assert_nil current("events"), "the attached partition has no trigger"
    @versions.uninstall(%w[events])
    @versions.install(%w[events])
    assert current("events")
  end

  def test_an_heir_and_a_partition_count_with_what_is_written_through_their_parents
    run_sql("CREATE TABLE guests (id integer PRIMARY KEY) INHERITS (users)")
    run_sql("CREATE TABLE regulars () INHERITS (guests)")
    run_sql("CREATE TABLE events (id integer, year integer) PARTITION BY LIST (year)")
    run_sql("CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1)")
    @versions.install(%w[events_1])
    assert_nil current("events_1"), "events has no trigger"
    @versions.install(%w[users events])
    { "regulars" => "UPDATE users SET name = 'b'", "guests" => "DELETE FROM users", "events_1" => "INSERT INTO events VALUES (1, 1)" }
      .each do |table, sql|
        token = current(table)
        other.run(sql)
        refute_nil current(table), sql
        refute_equal token, current(table), sql
      end
  end

  def test_a_table_whose_rows_depend_on_the_role_has_no_token
    assert users
    other.run("ALTER TABLE users ENABLE ROW LEVEL SECURITY")
    assert_nil users
  end

  def test_a_table_that_a_crash_would_empty_has_no_token
    assert users
    other.run("ALTER TABLE users SET UNLOGGED")
    assert_nil users
    assert_nil current("users", "roles")
    other.run("ALTER TABLE users SET LOGGED")
    assert users
  end

  def test_a_transaction_that_has_written_gets_no_token
    transaction do
      assert users
      run_sql("INSERT INTO roles VALUES (1, 'a')")
      assert_nil users, "what it sees may be rolled back"
    end
    assert users
  end

  def test_a_writer_that_began_early_and_commits_late_changes_the_token_when_it_commits
    early = program
    early.run("BEGIN")
    early.run("INSERT INTO users VALUES (1, 'early')")
    late = program
    late.run("BEGIN")
    late.run("INSERT INTO users VALUES (2, 'late')") # does not wait for the first
    assert_changes { late.run("COMMIT") }
    assert_equal ["late"], names
    assert_changes { early.run("COMMIT") }
    assert_equal %w[early late], names.sort
  end

  def test_writers_in_stricter_isolation_do_not_fail_one_another
    ["REPEATABLE READ", "SERIALIZABLE"].each_with_index do |level, index|
      strict = program
      strict.run("BEGIN ISOLATION LEVEL #{level}")
      strict.run("SELECT 1")
      assert_changes { other.run("INSERT INTO users VALUES (#{10 * index}, 'a')") }
      strict.run("INSERT INTO users VALUES (#{(10 * index) + 1}, 'b')")
      assert_changes { strict.run("COMMIT") }
    end
  end

  def test_a_commit_after_a_rolled_back_savepoint_changes_the_token
    assert_changes do
      program.run("BEGIN; INSERT INTO users VALUES (1, 'a'); SAVEPOINT s; INSERT INTO users VALUES (2, 'b'); ROLLBACK TO s; COMMIT")
    end
    assert_equal ["a"], names
  end

  def test_concurrent_writers_never_share_a_token_for_two_states
    programs = Array.new(4) { program }
    seen = Hash.new { |hash, token| hash[token] = [] }
    stop = false
    reader = Thread.new { (token = users) && (seen[token] << names.sort) until stop }
    programs.each_with_index.map do |program, i|
      Thread.new { 40.times { |n| program.run("INSERT INTO users VALUES (#{(i * 100) + n}, '#{i}-#{n}')") } }
    end.each(&:join)
    stop = true
    reader.join
    sizes = seen.values.map { |states| states.map(&:size).min }
    assert_equal sizes.sort, sizes, "a later token never has an earlier state"
    assert_equal 160, names.size
    (seen[users] << names).each { |state| assert_equal 160, state.size, "nothing was kept too early under the last token" }
  end

  def test_a_connection_has_a_counter_of_its_own_and_takes_over_that_of_one_that_has_ended
    programs = Array.new(5) { program }
    2.times { |n| programs.each_with_index { |program, i| program.run("INSERT INTO users VALUES (#{(10 * n) + i}, 'x')") } }
    assert_equal "5", counters
    pids = programs.map { |program| program.run("SELECT pg_backend_pid() AS pid").first["pid"] }
    programs.each(&:close)
    Thread.pass until other.run("SELECT 1 FROM pg_stat_activity WHERE pid IN (#{pids.join(", ")})").none?
    assert_changes { other.run("UPDATE users SET name = 'y'") }
    assert_equal "1", counters
  end

  # Else a few thousand connections would overflow it, and a replica that takes over could repeat a token.
  def test_counters_of_ended_connections_do_not_add_up
    tokens = Array.new(6) do |round|
      programs = Array.new(3) { program }
      seen = programs.each_with_index.map { |one, n| one.run("INSERT INTO users VALUES (#{(3 * round) + n}, 'x')") && users }
      pids = programs.map { |one| one.run("SELECT pg_backend_pid() AS pid").first["pid"] }
      programs.each(&:close)
      Thread.pass until other.run("SELECT 1 FROM pg_stat_activity WHERE pid IN (#{pids.join(", ")})").none?
      seen
    end
    assert_equal 18, tokens.flatten.uniq.size
    ahead = other.run("SELECT max(n) - date_part('epoch', clock_timestamp()) * 1000000 AS us FROM castellan_versions").first["us"]
    assert_operator ahead.to_f, :<, 0
  end

  # pg_stat_activity shows what it showed first in the transaction.
  def test_a_connection_that_is_newer_than_a_transaction_keeps_its_counter
    program.run("INSERT INTO roles VALUES (1, 'a')")
    other.run("BEGIN; INSERT INTO roles VALUES (2, 'b')") # reads pg_stat_activity for the row of the other connection
    newer = program
    newer.run("INSERT INTO users VALUES (1, 'a')")
    other.run("INSERT INTO users VALUES (2, 'b'); COMMIT")
    assert_equal "2", counters
  end

  def test_a_clock_that_is_set_back_repeats_no_token
    other.run("UPDATE castellan_versions SET n = n + 3600000000")
    counters = Array.new(4) do |id|
      program.run("INSERT INTO users VALUES (#{id}, 'x')") if id.positive?
      other.run("SELECT max(n) AS n FROM castellan_versions WHERE relation = 'users'::regclass").first["n"].to_i
    end
    assert_equal counters.uniq.sort, counters, "the counter of a new connection is the greatest"
  end

  def test_serializable_writers_leave_counters_that_the_next_connection_takes_over
    serializable = program
    serializable.run("SET default_transaction_isolation = 'serializable'")
    3.times { |id| assert_changes { serializable.run("INSERT INTO users VALUES (#{id}, 'x')") } }
    assert_equal "4", counters
    assert_changes { other.run("UPDATE users SET name = 'y'") }
    assert_equal "1", counters
  end

  # The connection goes on while its prepared transaction keeps the counter locked.
  def test_a_prepared_transaction_stops_no_other_write
    @url = Castellan::TestServers.postgres_url(settings: %w[max_prepared_transactions=4])
    writer = program
    writer.run("SET client_min_messages = warning; CREATE TABLE things (id int)")
    Castellan::Versions::PostgresTriggers.install("things").each { |sql| writer.run(sql) }
    token = -> { program.run(Castellan::Versions::PostgresTriggers.current(%w[things])).first.values.first }
    writer.run("SET lock_timeout = '2s'")
    seen = [token.call]
    2.times do |n|
      writer.run("BEGIN; INSERT INTO things VALUES (#{n}); PREPARE TRANSACTION 'p#{n}'")
      seen << token.call
      writer.run("INSERT INTO things VALUES (10)")
      seen << token.call
    end
    2.times { |n| writer.run("COMMIT PREPARED 'p#{n}'") && seen << token.call }
    assert_equal [0, 0, 1, 0, 1, 1, 1], seen.each_cons(2).map { |before, after| before == after ? 0 : 1 }.unshift(0)
    assert_operator writer.run("SELECT count(*) AS n FROM castellan_versions").first["n"].to_i, :<=, 3
  end

  # Some applications forbid nested loops. PostgreSQL then adds 10 billion to the cost of each join without a condition, and
  # compiles the statement, which takes far longer than to run it.
  def test_the_statement_stays_cheap_where_nested_loops_are_off
    other.run("SET enable_nestloop = off")
    plan = other.run("EXPLAIN #{Castellan::Versions::PostgresTriggers.current(%w[users])}").first.values.first
    assert_operator plan[/cost=.*\.\.([\d.]+)/, 1].to_f, :<, 100_000, "PostgreSQL compiles statements of this cost (jit_above_cost)"
  end

  # As the migrations of an application with a schema for each tenant and a common table of users do.
  def test_schemas_that_share_a_table_read_one_version_of_it
    run_sql("CREATE SCHEMA tenant")
    holding do
      run_sql("SET search_path = tenant, public")
      @versions.install(%w[public.users])
      seen = [current("public.users")]
      other.run("INSERT INTO users VALUES (1, 'a')")
      seen << current("public.users")
      run_sql("RESET search_path")
      assert_changes { other.run("INSERT INTO users VALUES (2, 'b')") }
      seen << users << (@versions.install(%w[users]) || users)
      run_sql("SET search_path = tenant, public")
      seen << current("public.users") << (other.run("DELETE FROM users") && current("public.users"))
      assert_equal [nil, 5], [seen.find(&:nil?), seen.uniq.size], seen
      assert_equal seen[3], seen[4], "both schemas read the version of the one that installed last"
    ensure
      run_sql("RESET search_path")
    end
  end

  def test_a_transaction_in_a_schema_without_the_functions_continues
    assert users
    run_sql("CREATE SCHEMA empty; CREATE ROLE nobody; GRANT SELECT ON users TO nobody")
    run_sql("REVOKE EXECUTE ON FUNCTION castellan_version(oid, boolean) FROM PUBLIC")
    ["search_path = empty", "ROLE nobody"].each do |setting|
      transaction do
        run_sql("SET LOCAL #{setting}")
        assert_nil current("public.users"), setting
        run_sql("SELECT 1")
      end
    end
  ensure
    run_sql("DROP OWNED BY nobody; DROP ROLE nobody")
  end

  def test_a_view_is_refused
    run_sql("CREATE VIEW names AS SELECT name FROM users")
    error = assert_raises(StandardError) { @versions.install(%w[names]) }
    assert_includes error.message, "names is no table"
  end

  def test_threads_with_a_search_path_of_their_own_do_not_share_a_version
    %w[one two].each { |schema| run_sql("CREATE SCHEMA #{schema}; CREATE TABLE #{schema}.users (id int)") }
    @versions.install(%w[one.users two.users])
    threads = %w[one two one two].map do |schema|
      Thread.new do
        holding do
          run_sql("SET search_path = #{schema}, public")
          Array.new(100) { users }.uniq
        ensure
          run_sql("RESET search_path")
        end
      end
    end
    assert_equal %w[one two one two].map { |schema| [current("#{schema}.users")] }, threads.map(&:value)
  end

  def test_a_writer_cannot_run_code_with_the_rights_of_the_triggers_owner
    run_sql("CREATE SCHEMA mine")
    run_sql("CREATE FUNCTION mine.caught(oid, oid) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''caught''; END'")
    run_sql("CREATE OPERATOR mine.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = mine.caught)")
    run_sql("CREATE FUNCTION mine.pg_backend_pid() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE ''caught''; END'")
    other.run("SET search_path = mine, pg_catalog, public")
    2.times { |id| assert_changes { other.run("INSERT INTO users VALUES (#{id}, 'a')") } }
  end

  def test_prepared_statements_that_the_server_dropped_are_prepared_again
    token = users
    run_sql("DEALLOCATE ALL")
    assert_equal token, users
  end

  def test_a_reset_connection_reads_the_token_in_a_transaction
    3.times { users }
    raw { |connection| connection.reset }
    transaction { assert users }
  end

  def test_a_statement_whose_preparation_was_interrupted_is_prepared_again
    raw do |connection|
      connection.define_singleton_method(:prepare) { |*args| super(*args) && throw(:interrupted) }
      catch(:interrupted) { 5.times { users } }
      connection.singleton_class.send(:remove_method, :prepare)
    end
    transaction { 3.times { assert users } }
  end

  def test_without_prepared_statements
    versions = Castellan::Versions::ExactVersions.new(source, prepared: false)
    assert_equal users, versions.current([Castellan::Versions::Dependency.new("users")])
  end

  def test_a_role_without_ownership_writes_and_reads
    role = "castellan_reader_#{SecureRandom.hex(4)}"
    run_sql("CREATE ROLE #{role}")
    run_sql("GRANT SELECT, INSERT ON users TO #{role}")
    run_sql("SET ROLE #{role}")
    assert_changes { run_sql("INSERT INTO users VALUES (1, 'a')") }
  ensure
    run_sql("RESET ROLE")
  end

  def test_a_table_in_another_schema
    run_sql("CREATE SCHEMA billing")
    run_sql("CREATE TABLE billing.users (id integer PRIMARY KEY, name text)")
    @versions.install(%w[billing.users])
    token = current("billing.users")
    assert token
    assert_changes { run_sql("INSERT INTO users VALUES (1, 'a')") }
    assert_equal token, current("billing.users")
    other.run("INSERT INTO billing.users VALUES (1, 'a')")
    refute_equal token, current("billing.users")
  end

  private

  def url = @url ||= Castellan::TestServers.postgres_url
  def program = Program.new(url).tap { |program| (@others ||= []) << program }
  def other = @other ||= program
  def counters = other.run("SELECT count(*) AS n FROM castellan_versions WHERE relation = 'users'::regclass").first["n"]
end

module ExactVersionsOnActiveRecord
  def teardown
    forget(@source)
    super
  end

  private

  def connect = source

  def source
    @source ||= begin
      name = "ExactVersionsRecord#{SecureRandom.hex(8)}"
      record = Class.new(ActiveRecord::Base) { self.abstract_class = true }
      Object.const_set(name, record)
      record.establish_connection(configuration)
      record
    end
  end

  def run_sql(sql) = source.connection.execute(sql)
  def raw = yield(source.connection.raw_connection)
  def holding(&) = source.connection_pool.with_connection(&)
  def names = source.connection.select_values("SELECT name FROM users ORDER BY id")

  def transaction(rollback: false)
    source.transaction do
      yield
      raise ActiveRecord::Rollback if rollback
    end
  end
end

module ExactVersionsOnSequel
  def teardown
    forget(@source)
    super
  end

  private

  def connect = source
  def run_sql(sql) = source.run(sql)
  def holding(&) = source.synchronize(&)
  def raw(&block) = source.synchronize(&block)
  def names = source[:users].order(:id).select_map(:name)
  def transaction(rollback: false, &block) = source.transaction(rollback: (:always if rollback), &block)
end

class ExactVersionsActiveRecordSQLiteTest < Minitest::Test
  include ExactVersionsContract
  include ExactVersionsOnSQLite
  include ExactVersionsOnActiveRecord

  def test_insert_or_replace_changes_the_token
    run_sql("INSERT INTO users VALUES (1, 'a')")
    assert_changes { run_sql("INSERT OR REPLACE INTO users VALUES (1, 'b')") }
  end

  def test_the_statement_notifies_recordings_and_query_logs_only
    observer = Class.new { def query(*) = nil }.new
    assert_empty events
    assert_equal ["Castellan Version"], Castellan::Recording.open(observer) { events }
    log = StringIO.new
    ActiveRecord::Base.logger = Logger.new(log)
    assert_equal ["Castellan Version"], events
  ensure
    ActiveRecord::Base.logger = nil
  end

  def events
    current = -> { @versions.current([Castellan::Versions::Dependency.new("users")]) }
    current.call
    [].tap { |seen| ActiveSupport::Notifications.subscribed(->(*, payload) { seen << payload[:name] }, "sql.active_record", &current) }
  end

  private

  def configuration = { adapter: "sqlite3", database: path }
end

class ExactVersionsSequelSQLiteTest < Minitest::Test
  include ExactVersionsContract
  include ExactVersionsOnSQLite
  include ExactVersionsOnSequel

  private

  def source = @source ||= Sequel.sqlite(path)
end

class ExactVersionsActiveRecordPostgresTest < Minitest::Test
  include ExactVersionsContract
  include ExactVersionsOnPostgres
  include ExactVersionsOnActiveRecord

  def test_a_database_that_fails_is_logged_once_per_outage_while_another_answers
    in_another_shard do
      run_sql("CREATE TABLE users (id integer)")
      @versions.install(%w[users])
      2.times do |outages|
        assert users
        run_sql("ALTER TABLE castellan_versions RENAME TO gone")
        3.times { assert_nil(users) && at_home { assert users } }
        assert_equal outages + 1, @lines.size, @lines.inspect
        run_sql("ALTER TABLE gone RENAME TO castellan_versions")
      end
    end
  end

  def test_no_statement_is_prepared_if_the_configuration_says_so
    source.establish_connection("#{url}#{url.include?("?") ? "&" : "?"}prepared_statements=false")
    versions = Castellan::Versions::ExactVersions.new(source)
    transaction { 6.times { assert versions.current([Castellan::Versions::Dependency.new("users")]) } }
    assert_empty source.connection.select_values("SELECT name FROM pg_prepared_statements")
  end

  private

  def in_another_shard(&)
    source.connection_handler.establish_connection(Castellan::TestServers.postgres_url, owner_name: source, shard: :other)
    ActiveRecord::Base.connected_to(shard: :other, &)
  ensure
    source.connection_handler.remove_connection_pool(source.name, shard: :other)
  end

  def at_home(&) = ActiveRecord::Base.connected_to(shard: :default, &)
  def configuration = url
end

class ExactVersionsSequelPostgresTest < Minitest::Test
  include ExactVersionsContract
  include ExactVersionsOnPostgres
  include ExactVersionsOnSequel

  PROCESS = /K\0\0\0\x0c.{4}/mn # the message BackendKeyData: a process and a secret, four bytes each

  # Where another server process may run the next transaction.
  def test_no_statement_is_prepared_behind_a_pooler
    proxy = Castellan::StallingProxy.new(URI(url).port) { |bytes| bytes.sub(PROCESS) { "K\0\0\0\x0c\x7f\xff\xff\xff".b } }
    pooled = Sequel.connect(url.sub(/:#{URI(url).port}\b/, ":#{proxy.port}"))
    versions = Castellan::Versions::ExactVersions.new(pooled)
    pooled.transaction { 6.times { assert versions.current([Castellan::Versions::Dependency.new("users")]) } }
    assert_empty pooled[:pg_prepared_statements].select_map(:name)
  ensure
    pooled&.disconnect
    Sequel::DATABASES.delete(pooled)
    proxy&.close
  end

  private

  def source = @source ||= Sequel.connect(url)
end

class ExactVersionsSourceTest < Minitest::Test
  def test_any_other_object_raises
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Versions::ExactVersions.new(Object) }
    assert_includes error.message, "ActiveRecord::Base (or a class of it) or a Sequel::Database, got Object"
  end

  def test_an_unsupported_database_raises_with_advice
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Versions::RawConnections.dialect("mysql2") }
    assert_includes error.message, "use CommitVersions"
  end

  def test_the_name_of_a_table_is_checked
    ["", "users; DROP TABLE x", "a.b.c", "\"users\"", "us'ers"].each do |name|
      assert_raises(Castellan::ConfigurationError, name) { Castellan::Versions::Dependency.new(name) }
    end
    assert_equal Castellan::Versions::Dependency.new("users"), Castellan::Versions::Dependency.new(:users)
  end
end
