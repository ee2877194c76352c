# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "pg"

# Versions of the rows with one value of a column: a write changes those of the values that its rows had or have, and no others
# but by chance of their bucket.
module VersionsByColumnContract
  Dependency = Castellan::Versions::Dependency
  OTHER = "0b1f9d3e-1111-4222-8333-444455556666"
  MINE = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

  def setup
    needs :postgres
    super
    @url = Castellan::TestServers.postgres_url
    connect
    run_sql("CREATE TABLE posts (id integer PRIMARY KEY, account_id bigint, owner uuid, title text)")
    run_sql("INSERT INTO posts SELECT n, n / 10, '#{MINE}', 'a' FROM generate_series(1, 99) n")
    @versions = Castellan::Versions::ExactVersions.new(source)
    @versions.install(%w[posts], by: %i[id account_id owner])
  end

  def test_a_write_changes_the_versions_of_the_values_that_its_rows_had_and_have
    { "INSERT INTO posts VALUES (100, 2, '#{OTHER}', 'b')" => [2], "UPDATE posts SET title = 'c' WHERE account_id = 3" => [3],
      "UPDATE posts SET account_id = 2 WHERE id = 31" => [2, 3], "DELETE FROM posts WHERE id = 41" => [4],
      "INSERT INTO posts VALUES (5, 1, NULL, 'x') ON CONFLICT (id) DO UPDATE SET account_id = 1" => [0, 1],
      "WITH gone AS (DELETE FROM posts WHERE id = 51 RETURNING *) UPDATE posts SET title = 'd' WHERE id = 61" => [5, 6],
      "UPDATE posts SET title = 'e' WHERE id = -1" => [] }.each do |sql, changed|
        before = tenants
        run_sql(sql)
        assert_equal changed, tenants.each_index.reject { |tenant| tenants[tenant] == before[tenant] }, sql
      end
  end

  def test_the_version_of_the_table_changes_with_each_of_them
    before = token
    run_sql("UPDATE posts SET title = 'b' WHERE id = 1")
    refute_equal before, token
  end

  # Where the collation of a column takes different texts as equal.
  def test_texts_that_are_equal_for_the_column_are_counted_apart
    run_sql("CREATE COLLATION blurred (provider = icu, locale = 'und-u-ka-shifted-ks-level2', deterministic = false); " \
            "CREATE TABLE texts (code text COLLATE blurred, n int); INSERT INTO texts VALUES ('1', 0), ('-1', 0)")
    @versions.install(%w[texts], by: "code")
    found = -> { %w[1 -1].map { |code| @versions.current([Dependency.new("texts", by: "code", value: code)]) } }
    before = found.call
    run_sql("UPDATE texts SET n = 1")
    assert_equal([false, false], before.zip(found.call).map { |one, other| one == other })
  end

  # The functions of the triggers have the rights of their owner, and any role may use them for tables of its own.
  def test_a_table_of_another_role_runs_no_code_with_the_rights_of_the_owner
    run_sql("CREATE ROLE stranger; CREATE SCHEMA strange AUTHORIZATION stranger; SET ROLE stranger; " \
            "CREATE TABLE strange.seen (who text); CREATE TYPE strange.kind AS (n int); CREATE TABLE strange.things (kind strange.kind); " \
            "CREATE FUNCTION strange.shown(strange.kind) RETURNS text LANGUAGE sql AS $$ INSERT INTO strange.seen VALUES (current_user) " \
            "RETURNING 'x' $$; CREATE CAST (strange.kind AS text) WITH FUNCTION strange.shown(strange.kind); " \
            "CREATE TRIGGER a AFTER INSERT ON strange.things REFERENCING NEW TABLE AS castellan_new FOR EACH STATEMENT " \
            "EXECUTE FUNCTION castellan_bump_buckets('kind'); INSERT INTO strange.things VALUES (ROW(1))")
    run_sql("DROP TRIGGER a ON strange.things; CREATE TEMP VIEW castellan_new AS SELECT strange.shown(ROW(1)::strange.kind) AS kind; " \
            "CREATE TRIGGER a AFTER INSERT ON strange.things FOR EACH STATEMENT EXECUTE FUNCTION castellan_bump_buckets('kind'); " \
            "INSERT INTO strange.things VALUES (ROW(1))")
    assert_empty rows("SELECT who FROM strange.seen")
  ensure
    run_sql("RESET ROLE; DROP OWNED BY stranger CASCADE; DROP ROLE stranger")
  end

  def test_records_and_uuids_have_versions_of_their_own
    one, another, mine, other = token(id: 1), token(id: 2), token(owner: MINE.upcase), token(owner: OTHER)
    run_sql("UPDATE posts SET title = 'b' WHERE id = 1")
    refute_equal one, token(id: 1)
    assert_equal another, token(id: 2)
    refute_equal mine, token(owner: MINE)
    assert_equal other, token(owner: OTHER)
  end

  def test_what_is_no_single_value_changes_all_of_them
    ["UPDATE posts SET account_id = NULL WHERE id = 1", "UPDATE posts SET title = 'b' WHERE account_id IS NULL", "TRUNCATE posts",
     "INSERT INTO posts SELECT n, n FROM generate_series(1, 40) n",
     "ALTER TABLE posts RENAME account_id TO tenant_id; UPDATE posts SET title = 'f' WHERE id = 7",
     "ALTER TABLE posts ADD account_id bigint", "ALTER TABLE posts DISABLE TRIGGER castellan_version_by_update"].each do |sql|
      before = tenants
      run_sql(sql)
      assert_empty before & tenants, sql
    end
    assert_equal [token], tenants.uniq, "without a trigger they have the version of the table"
  end

  def test_a_row_that_no_jsonb_can_have_can_be_written
    run_sql("ALTER TABLE posts ADD document json")
    before = tenants
    run_sql(%q(UPDATE posts SET document = '["\\u0000", 1e400000]' WHERE account_id = 3))
    assert_equal([3], tenants.each_index.reject { |tenant| tenants[tenant] == before[tenant] })
  end

  def test_serializable_writers_of_different_tables_do_not_cancel_each_other
    run_sql("CREATE TABLE notes (id integer, account_id bigint)")
    @versions.install(%w[notes], by: "account_id")
    before = tenants
    one, other = Array.new(2) { PG.connect(@url).tap { |connection| connection.exec("BEGIN ISOLATION LEVEL SERIALIZABLE") } }
    one.exec("INSERT INTO posts VALUES (100, 2)")
    other.exec("INSERT INTO notes VALUES (1, 2)")
    one.exec("INSERT INTO posts VALUES (101, 3); COMMIT")
    other.exec("COMMIT")
    assert_equal([2, 3], tenants.each_index.reject { |tenant| tenants[tenant] == before[tenant] })
  ensure
    [one, other].each { |connection| connection&.close }
  end

  def test_a_column_that_is_not_counted_has_the_version_of_the_table
    assert_equal token, token(title: MINE)
    @versions.install(%w[posts])
    assert_equal token, token(account_id: 1)
    assert_raises(StandardError) { @versions.install(%w[posts], by: "nonsense") }
    assert_equal token, token(account_id: 1)
    @versions.uninstall(%w[posts])
    assert_nil token(account_id: 1)
  end

  def test_a_table_that_gets_an_heir_has_the_version_of_the_table
    run_sql("CREATE TABLE drafts () INHERITS (posts)")
    assert_nil token(account_id: 1)
    @versions.install(%w[posts], by: "account_id")
    assert_equal token, token(account_id: 1)
  end

  def test_counters_that_are_gone_come_back_with_a_write
    run_sql("DELETE FROM castellan_buckets")
    assert_equal token, token(account_id: 1)
    run_sql("UPDATE posts SET title = 'b' WHERE account_id = 1")
    before = token(account_id: 1)
    refute_equal token, before
    run_sql("UPDATE posts SET title = 'b' WHERE account_id = 2")
    assert_equal before, token(account_id: 1)
  end

  def test_an_installation_without_columns_counts_tables
    @versions.install(%w[posts])
    assert_equal token, token(account_id: 1)
  end

  # Each bytes are those of a reader that took the version first, while others move rows between the tenants.
  def test_random_writes_of_several_sessions_leave_no_stale_answer
    writers = Array.new(3) do |number|
      Thread.new do
        connection = PG.connect(@url)
        random = Random.new(number)
        120.times { write(connection, random) }
      ensure
        connection&.close
      end
    end
    kept = {}
    reads = 0
    while writers.any?(&:alive?) || reads < 300
      read(kept, reads % 10)
      reads += 1
    end
    writers.each(&:value)
    10.times { |tenant| assert_equal titles(tenant), read(kept, tenant), "tenant #{tenant}" }
  end

  private

  def write(connection, random)
    id, tenant = random.rand(1..99), random.rand(10)
    sql = ["UPDATE posts SET title = '#{random.rand}' WHERE id = #{id}", "UPDATE posts SET account_id = #{tenant} WHERE id = #{id}",
           "DELETE FROM posts WHERE id = #{id}", "UPDATE posts SET title = title || 'x' WHERE account_id = #{tenant}",
           "INSERT INTO posts VALUES (#{id}, #{tenant}) ON CONFLICT (id) DO UPDATE SET account_id = EXCLUDED.account_id"]
          .sample(random: random)
    isolation = ["READ COMMITTED", "REPEATABLE READ"].sample(random: random)
    connection.exec("BEGIN ISOLATION LEVEL #{isolation}; #{sql}; SAVEPOINT s; #{sql}; #{"ROLLBACK TO s;" if random.rand < 0.5} " \
                    "#{random.rand < 0.8 ? "COMMIT" : "ROLLBACK"}")
  rescue PG::TRSerializationFailure, PG::TRDeadlockDetected
    connection.exec("ROLLBACK")
  end

  # Bytes kept under this version equal the rows of now, if nobody wrote in between.
  def read(kept, tenant)
    version = token(account_id: tenant)
    rows = titles(tenant)
    known = kept[[tenant, version]] ||= rows
    assert_equal rows, known, "tenant #{tenant} under #{version}" if version == token(account_id: tenant)
    known
  end

  def titles(tenant) = rows("SELECT id, title FROM posts WHERE account_id = #{tenant} ORDER BY id")
  def tenants = Array.new(10) { |tenant| token(account_id: tenant) }

  # Reads twice more, because a version that was read several times may be repeated without its statement.
  def token(by = {})
    column, value = by.first
    dependencies = [Dependency.new("posts", by: column&.to_s, value: value)]
    @versions.current(dependencies).tap { 2.times { @versions.current(dependencies) } }
  end
end

class VersionsByColumnOnActiveRecordTest < Minitest::Test
  include VersionsByColumnContract

  def teardown
    ActiveRecord::Base.remove_connection
    ActiveRecord::Base.establish_connection(@before) if @before
    super
  end

  private

  def connect
    @before = ActiveRecord::Base.remove_connection
    ActiveRecord::Base.establish_connection(@url)
  end

  def source = ActiveRecord::Base
  def run_sql(sql) = ActiveRecord::Base.connection.execute(sql)
  def rows(sql) = ActiveRecord::Base.connection.select_rows(sql)
end

class VersionsByColumnOnSequelTest < Minitest::Test
  include VersionsByColumnContract

  def teardown
    @database&.disconnect
    super
  end

  private

  def connect = @database = Sequel.connect(@url)
  def source = @database
  def run_sql(sql) = @database.run(sql)
  def rows(sql) = @database[sql].map(&:values)
end
