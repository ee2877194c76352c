# frozen_string_literal: true

require "pg"

# Writes SQL in random transactions on a connection of its own, as another program does.
#
#   writer = RandomWriter.new(library.url, Random.new(17))
#   writer.step { |random| "UPDATE articles SET title = '#{random.rand}'" }
#   writer.change(RandomWriter::CHANGES.first)
#   writer.finish                                                # commits or rolls back
#
# Steps of several writers interleave in one thread: a statement that would wait for another writer, or that fails, ends its
# transaction.
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
  # Errors of a change of partitions in the wrong state: a partition is attached, or not, or has rows of another.
  WRONG_STATE = [PG::WrongObjectType, PG::UndefinedTable, PG::DuplicateTable, PG::CheckViolation, PG::DatatypeMismatch].freeze
  private_constant :LEVELS, :REFUSED, :WRONG_STATE

  # @return [Array<String>] the changes that succeeded
  attr_reader :changed

  def initialize(url, random, changes: CHANGES)
    @connection = PG.connect(url)
    @connection.set_notice_processor { |_notice| nil }
    @connection.exec("SET lock_timeout = '5ms'")
    @random = random
    @changes = changes
    @changed = []
  end

  # @yieldparam random [Random]
  # @yieldreturn [String] SQL of a write
  def step
    attempt do
      case @random.rand(8)
      when 0 then open? ? end_transaction : run("BEGIN ISOLATION LEVEL #{LEVELS.sample(random: @random)}")
      when 1 then savepoint { yield @random }
      when 2 then change_or_write { yield @random }
      when 3 then copy
      else run(yield(@random))
      end
    end
  end

  # @param sql [String] which leaves no transaction open
  def change(sql)
    attempt { run(sql) && @changed << sql }
  end

  def finish
    attempt { end_transaction } if open?
  end

  def close
    @connection.close
  end

  private

  def open? = @connection.transaction_status != PG::PQTRANS_IDLE
  def run(sql) = @connection.exec(sql)
  def end_transaction = run(@random.rand < 0.7 ? "COMMIT" : "ROLLBACK")

  def attempt
    yield
  rescue *REFUSED, *WRONG_STATE
    @connection.exec("ROLLBACK")
  end

  # Seldom changes, because every connection plans its statements anew after a change of a table.
  def change_or_write
    return end_transaction if open?

    @random.rand(20).zero? ? change(@changes.sample(random: @random)) : run(yield)
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
