# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/drivers"
require "pg"
require "sqlite3"
require_relative "../detect/active_record_world"
require_relative "../detect/sequel_world"

class RawInstrumentsTest < Minitest::Test
  # Records the notified SQL.
  class Texts
    attr_reader :all, :binds

    def initialize
      @all = []
      @binds = []
    end

    def query(sql, _name, _started_ns, _duration_ns, _cached, _rows, binds)
      @all << sql
      @binds << binds
    end

    def strand = self
  end

  # Has its own connection.
  class OnPostgres < ActiveRecord::Base
    self.abstract_class = true
  end

  def test_every_way_to_send_a_statement_through_pg_notifies_once
    needs :postgres
    connection = PG.connect(Castellan::TestServers.postgres_url)
    sent = texts do
      connection.exec("SELECT 1")
      connection.query("SELECT 2")
      connection.exec_params("SELECT $1::int", [3])
      connection.prepare("four", "SELECT $1::int + 1")
      connection.exec_prepared("four", [4])
      connection.async_exec("SELECT 5") { |result| result.getvalue(0, 0) }
    end
    assert_equal ["SELECT 1", "SELECT 2", "SELECT $1::int", "SELECT $1::int + 1", "SELECT 5"], sent.all
    assert_equal [nil, nil, [3], [4], nil], sent.binds
  ensure
    connection&.close
  end

  def test_a_failed_statement_of_pg_notifies_and_raises
    needs :postgres
    connection = PG.connect(Castellan::TestServers.postgres_url)
    sent = texts { assert_raises(PG::UndefinedTable) { connection.exec("SELECT * FROM nowhere") } }
    assert_equal ["SELECT * FROM nowhere"], sent.all
  ensure
    connection&.close
  end

  def test_every_way_to_send_a_statement_through_sqlite3_notifies_once
    database = SQLite3::Database.new(":memory:")
    sent = texts do
      database.execute("SELECT 1")
      database.execute("SELECT ?", [2]) { |row| row }
      database.get_first_value("SELECT 3")
      database.get_first_row("SELECT 4")
      database.query("SELECT 5", &:to_a)
      database.execute2("SELECT 6")
      database.prepare("SELECT ?") { |statement| statement.execute(7).to_a && statement.execute!(8) }
    end
    assert_equal 8, sent.all.size
    # Before version 2, a statement of sqlite3 does not keep its text.
    texts = %w[1 ? 3 4 5 6 ? ?].map { |value| "SELECT #{value}" }
    assert_equal texts, sent.all if Gem::Version.new(SQLite3::VERSION) >= Gem::Version.new("2")
    assert_equal [2, 7, 8], sent.binds.flatten.compact
  ensure
    database&.close
  end

  def test_a_statement_of_an_orm_on_sqlite_notifies_once
    work = -> { [ActiveRecordWorld::User.first, ActiveRecordWorld::User.where(name: "user 1").to_a, SequelWorld::User.first] }
    # The first use of a connection configures it with PRAGMAs.
    work.call
    2.times do
      sent = texts(&work)
      assert_equal 3, sent.all.size, sent.all.join("\n")
    end
  end

  def test_a_statement_of_active_record_on_postgres_notifies_once
    needs :postgres
    OnPostgres.establish_connection(Castellan::TestServers.postgres_url)
    OnPostgres.connection.create_table(:things) { |table| table.string(:name) }
    things = Class.new(OnPostgres) { self.table_name = "things" }
    work = -> { [things.where(name: "a").to_a, things.connection.select_value("SELECT 1"), things.find_by(name: "b")] }
    work.call
    2.times do
      sent = texts(&work)
      assert_equal 3, sent.all.size, sent.all.join("\n")
    end
  ensure
    forget(OnPostgres)
  end

  def test_a_statement_of_sequel_on_postgres_notifies_once
    needs :postgres
    database = Sequel.connect(Castellan::TestServers.postgres_url)
    database.create_table(:things) { primary_key :id }
    database[:things].insert
    sent = texts { [database[:things].all, database[:things].insert, database.fetch("SELECT ?", 1).all] }
    assert_equal 3, sent.all.size, sent.all.join("\n")
  ensure
    forget(database)
  end

  def test_a_raw_connection_of_active_record_notifies_for_both_users
    connection = ActiveRecordWorld::Base.connection
    ActiveRecordWorld::User.first
    sent = texts do
      raw = connection.raw_connection
      raw.execute("SELECT 1")
      ActiveRecordWorld::User.first
      raw.execute("SELECT 2")
    end
    assert_equal ["SELECT 1", "SELECT 2"], sent.all.grep(/\ASELECT \d\z/)
    assert_equal 3, sent.all.size, sent.all.join("\n")
  end

  # Agents that measure prepend to the same methods, and may do so after the first subscription.
  def test_a_statement_of_an_orm_notifies_once_below_the_module_of_another_gem
    assert_equal "[2, 3]", run_ruby("-e", <<~RUBY)
      require "sequel"
      require "castellan/instrument/drivers"
      count = ->(work) { Castellan::Instrument::Counter.new.tap { |counter| Castellan::Instrument.record(counter, &work) }.queries }
      database = Sequel.sqlite
      database.create_table(:users) { primary_key :id }
      orm = -> { [database[:users].all, database[:users].first] }
      2.times { count.(orm) } # the first one reads the version of SQLite, too
      agent = Module.new
      agent.module_eval(<<~CODE, File.join(Gem.dir, "gems/agent-1.0/lib/agent.rb"))
        def prepare(*arguments, &block) = [nil].map { super(*arguments, &block) }.first
        def execute(*arguments, &block) = [nil].map { super(*arguments, &block) }.first
      CODE
      [SQLite3::Database, SQLite3::Statement].each { |type| type.prepend(agent) }
      raw = SQLite3::Database.new(":memory:")
      direct = -> { [raw.query("SELECT 1").to_a, database.synchronize { raw.query("SELECT 2").to_a }, database[:users].all] }
      print [count.(orm), count.(direct)]
    RUBY
  end

  def test_statements_work_without_a_recording
    database = SQLite3::Database.new(":memory:")
    texts { nil }
    assert_equal [[1]], database.execute("SELECT 1")
    assert_equal [[2]], database.prepare("SELECT 2") { |statement| statement.execute.to_a }
    refute_predicate Castellan::Instrument, :subscribed?
  ensure
    database&.close
  end

  private

  def texts(&block) = Texts.new.tap { |observer| Castellan::Instrument.record(observer, &block) }
end
