# frozen_string_literal: true

require "test_helper"
require "pg"

# A version is read again after each transaction, and wherever it could be another one; otherwise it is repeated.
class PostgresSnapshotTest < Minitest::Test
  VERSION = "SELECT concat_ws(' ', $1::text, (SELECT sum(n) FROM numbers), current_user, current_setting('search_path'))"

  def setup
    needs :postgres
    @connections = []
    @url = Castellan::TestServers.postgres_url(settings: %w[autovacuum=off max_prepared_transactions=2])
    @snapshot = Castellan::Versions::PostgresSnapshot.new(VERSION, "coalesce(current_setting('test.relations', true), '')")
    @one, @another = Array.new(2) { connect }
    @one.exec("CREATE TABLE numbers (n int); INSERT INTO numbers VALUES (1); GRANT SELECT ON numbers TO PUBLIC")
  end

  def teardown
    @connections.each(&:close)
    super
  end

  def test_it_is_repeated_on_its_connection_until_a_transaction_ends
    3.times { version }
    assert_equal %i[repeated repeated], [way, way]
    @another.exec("CREATE TABLE others (n int)") # whatever it writes
    assert_equal %i[read_after_all read repeated], Array.new(3) { way }
    @another.exec("SELECT * FROM numbers")
    assert_equal :repeated, way
  end

  # A server that has crashed may use transaction ids again, but not with the same connections.
  def test_another_connection_reads_it_first
    3.times { version }
    assert_equal %i[read_after_all read repeated], Array.new(3) { way(@another) }
    assert_equal %i[read_after_all read read], [way, way(@another), way]
  end

  def test_while_transactions_end_all_the_time_one_statement_reads_it
    3.times { version }
    ways = Array.new(5) { @another.exec("INSERT INTO numbers VALUES (1)") && way }
    assert_equal %i[read_after_all read read read read], ways
    assert_equal "6", sum
  end

  def test_a_write_is_seen_when_it_commits_in_whatever_order
    early, late = Array.new(2) { connect.tap { |writer| writer.exec("BEGIN; INSERT INTO numbers VALUES (10)") } }
    assert_equal ["1"] * 4, sums
    late.exec("COMMIT")
    assert_equal ["11"] * 4, sums
    early.exec("SAVEPOINT s; INSERT INTO numbers VALUES (100); ROLLBACK TO s")
    assert_equal ["11"] * 4, sums
    early.exec("COMMIT")
    assert_equal ["21"] * 4, sums
    early.exec("BEGIN; UPDATE numbers SET n = 0; PREPARE TRANSACTION 'zero'")
    assert_equal ["21"] * 4, sums
    late.exec("COMMIT PREPARED 'zero'")
    assert_equal ["0"] * 4, sums
  end

  def test_a_transaction_reads_its_own
    3.times { version }
    @another.exec("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM numbers")
    assert_equal %i[read read], [way(@another), way(@another)]
    @one.exec("INSERT INTO numbers VALUES (1)")
    assert_equal %w[2 1 2], [sum, sum(@another), sum]
    @another.exec("COMMIT")
    assert_equal "2", sum(@another)
  end

  def test_another_search_path_role_or_temporary_table_has_another_version
    role = "castellan_reader_#{SecureRandom.hex(4)}"
    @one.exec("CREATE ROLE #{role}")
    ["SET search_path = public, pg_catalog", "SET ROLE #{role}", "CREATE TEMPORARY TABLE numbers (n int)"].each do |sql|
      3.times { version(@another) }
      before = version(@another)
      @another.exec(sql)
      refute_equal before, version(@another), sql
      3.times { version(@another) }
      refute_equal version, version(@another), sql
      @another.exec("RESET ROLE; RESET ALL")
    end
  end

  # As after a rename that another process has not noticed when it reads the version.
  def test_it_is_read_again_if_the_names_mean_other_tables_in_the_same_snapshot
    3.times { version }
    @one.exec("SET test.relations = '{17}'")
    assert_equal %i[read_after_all read repeated], Array.new(3) { way }
    @another.exec("SET test.relations = '{18}'")
    assert_equal :read_after_all, way(@another)
  end

  def test_databases_of_one_server_do_not_share_it
    other = connect(Castellan::TestServers.postgres_url(settings: %w[autovacuum=off max_prepared_transactions=2]))
    other.exec("CREATE TABLE numbers (n int); INSERT INTO numbers VALUES (5)")
    3.times { version }
    assert_equal %w[1 5 1 5], [sum, sum(other), sum, sum(other)]
  end

  def test_a_replica_reads_it_each_time
    primary, replica = Castellan::TestServers.postgres_with_replica.map { |url| connect(url) }
    primary.exec("CREATE TABLE numbers (n int); INSERT INTO numbers VALUES (1)")
    sleep 0.01 until replica.exec("SELECT to_regclass('numbers')").getvalue(0, 0)
    assert_equal [:read] * 4, Array.new(4) { way(replica) }
    primary.exec("INSERT INTO numbers VALUES (1)")
    sleep 0.01 until sum(replica) == "2"
    3.times { version(primary) }
    assert_equal %i[repeated read_after_all read], [way(primary), way(replica), way(replica)]
  end

  def test_no_version_is_read_each_time
    @snapshot = Castellan::Versions::PostgresSnapshot.new("SELECT NULL::text WHERE $1 <> ''", "0")
    3.times { assert_nil version }
    assert_equal :read, way
  end

  private

  def connect(url = @url) = PG.connect(url).tap { |connection| @connections << connection }
  def sums = [sum, sum, sum, sum(@another)]
  def sum(connection = @one) = version(connection).split[1]

  def version(connection = @one)
    @statements = []
    @snapshot.version(connection, ["7"]) do |sql, values|
      @statements << sql
      connection.exec_params(sql, values) { |result| result.getvalue(0, 0) if result.ntuples.positive? }
    end
  end

  # @return [Symbol] :repeated, :read, or :read_after_all, with a statement in vain
  def way(connection = @one)
    version(connection)
    return :read_after_all if @statements.size == 2

    @statements.first.include?("$1") ? :read : :repeated
  end
end
