# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "sqlite3"
require "timeout"
require "tmpdir"

# A read that a Timeout interrupts (by `throw`) leaves neither a snapshot nor a lock on SQLite.
class InterruptedSqliteTest < Minitest::Test
  # The view can be made endless, so that the read is interrupted on any machine.
  TABLES = <<~SQL
    PRAGMA journal_mode = WAL;
    CREATE TABLE notes (id integer PRIMARY KEY, body text);
    CREATE TABLE bounds (rows integer);
    INSERT INTO bounds VALUES (1);
    CREATE VIEW numbers AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < (SELECT rows FROM bounds))
      SELECT id FROM n;
  SQL

  def setup
    @path = File.join(@dir = Dir.mktmpdir, "test.sqlite3")
    @other = SQLite3::Database.new(@path).tap { |database| database.execute_batch(TABLES) }
  end

  def teardown
    @other.close
    FileUtils.rm_rf(@dir)
  end

  def test_active_record_reads_new_rows_and_writes_after_an_interrupted_read
    base = self.class.const_set(:"Base#{object_id}", Class.new(ActiveRecord::Base) { self.abstract_class = true })
    base.establish_connection(adapter: "sqlite3", database: @path, timeout: 0)
    numbers = model(base, "numbers") { self.primary_key = "id" }
    note = model(base, "notes")
    after_an_interrupted_read(resource(numbers)) { note.count }
    assert note.create!(body: "written here")
  ensure
    forget(base)
  end

  def test_sequel_reads_new_rows_and_writes_after_an_interrupted_read
    database = Sequel.sqlite(@path, timeout: 0, max_connections: 1)
    numbers = Class.new(Sequel::Model(database[:numbers])) { plugin :prepared_statements }
    numbers.set_primary_key(:id)
    after_an_interrupted_read(resource(numbers)) { database[:notes].count }
    assert database[:notes].insert(body: "written here")
  ensure
    forget(database)
  end

  private

  def model(base, table, &block)
    model = Class.new(base) { self.table_name = table }
    model.class_eval(&block) if block
    self.class.const_set(:"#{table.capitalize}#{object_id}", model)
  end

  def resource(numbers)
    Class.new(Castellan::Resource) do
      model numbers
      type :numbers
    end
  end

  # SQLite keeps a statement that ran twice; the interrupt meets that kept statement.
  def after_an_interrupted_read(resource)
    2.times { assert_includes resource.render(:all), '"id":"1"' }
    @other.execute("UPDATE bounds SET rows = #{2**60}")
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { resource.render(:all) } }
    @other.execute("INSERT INTO notes (body) VALUES ('written elsewhere')")
    assert_equal 1, yield
  end
end
