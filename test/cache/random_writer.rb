# frozen_string_literal: true

require "pg"

# Another program that writes the library's tables: in transactions of every isolation level with savepoints, by COPY, with
# triggers that are off, and between changes of the tables themselves.
#
#   writer = RandomWriter.new(url, random)
#   writer.step { |random| "UPDATE articles …" }   # one statement, or the begin or end of a transaction
#
# A statement that would wait for another writer, or that fails, ends its transaction.
class RandomWriter
  LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"].freeze
  # Each ends by itself, because readers in the same thread would wait for its lock.
  CHANGES = [
    "TRUNCATE taggings",
    "ALTER TABLE articles ALTER COLUMN position TYPE bigint",
    "ALTER TABLE articles ALTER COLUMN position TYPE integer",
    "BEGIN; ALTER TABLE authors DISABLE TRIGGER castellan_version; UPDATE authors SET name = name || '!' WHERE id = 1; " \
    "ALTER TABLE authors ENABLE ALWAYS TRIGGER castellan_version; COMMIT",
    "ALTER TABLE authors DISABLE TRIGGER castellan_version",
    "ALTER TABLE authors ENABLE ALWAYS TRIGGER castellan_version",
    "BEGIN; SET LOCAL session_replication_role = replica; UPDATE articles SET title = 'Replica' WHERE id = 2; COMMIT",
    "WITH gone AS (DELETE FROM articles WHERE id = 40 RETURNING id) UPDATE authors SET name = 'Both' FROM gone",
    "INSERT INTO tags (id, name) VALUES (1, 'ruby') ON CONFLICT (id) DO UPDATE SET name = 'merged'",
    "DO $$ BEGIN UPDATE tags SET name = 'caught'; RAISE 'undone'; " \
    "EXCEPTION WHEN OTHERS THEN UPDATE tags SET name = 'kept' WHERE id = 2; END $$"
  ].freeze
  REFUSED = [PG::LockNotAvailable, PG::TRSerializationFailure, PG::TRDeadlockDetected, PG::InFailedSqlTransaction, PG::UniqueViolation].freeze
  private_constant :LEVELS, :CHANGES, :REFUSED

  def initialize(url, random)
    @connection = PG.connect(url)
    @connection.set_notice_processor { |_notice| nil }
    @connection.exec("SET lock_timeout = '5ms'")
    @random = random
  end

  # @yieldparam random [Random]
  # @yieldreturn [String] SQL of a write
  def step
    case @random.rand(8)
    when 0 then open? ? finish : run("BEGIN ISOLATION LEVEL #{LEVELS.sample(random: @random)}")
    when 1 then savepoint { yield @random }
    when 2 then open? ? finish : change { yield @random }
    when 3 then copy
    else run(yield(@random))
    end
  rescue *REFUSED
    @connection.exec("ROLLBACK")
  end

  def close
    @connection.close
  end

  private

  def open? = @connection.transaction_status != PG::PQTRANS_IDLE
  def run(sql) = @connection.exec(sql)
  def finish = run(@random.rand < 0.7 ? "COMMIT" : "ROLLBACK")

  # Seldom, because every connection plans its statements anew after a change of a table.
  def change
    run(@random.rand(20).zero? ? CHANGES.sample(random: @random) : yield)
  end

  def savepoint
    return run(yield) unless open?

    run("SAVEPOINT here")
    run(yield)
    run("#{@random.rand < 0.5 ? "ROLLBACK TO" : "RELEASE"} SAVEPOINT here")
  end

  def copy
    id = @random.rand(1_000..9_999_999)
    @connection.copy_data("COPY taggings (id, article_id, tag_id) FROM STDIN") { @connection.put_copy_data("#{id}\t1\t1\n") }
  end
end
