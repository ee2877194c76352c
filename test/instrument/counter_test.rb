# frozen_string_literal: true

require "test_helper"
require_relative "../detect/active_record_world"
require_relative "../detect/sequel_world"

class CounterTest < Minitest::Test
  Counter = Castellan::Instrument::Counter

  def test_it_counts_statements_and_their_time_on_active_record
    counter = count { ActiveRecordWorld::User.includes(:employee).to_a }
    assert_equal [2, 0], [counter.queries, counter.cached_queries]
    assert_operator counter.sql_ns, :>, 0
  end

  def test_it_counts_statements_on_sequel
    counter = count { SequelWorld::User.eager(:employee).all }
    assert_equal 2, counter.queries
  end

  def test_query_cache_hits_are_counted_separately
    counter = count { ActiveRecordWorld::Base.cache { 3.times { ActiveRecordWorld::User.first } } }
    assert_equal [1, 2], [counter.queries, counter.cached_queries]
  end

  def test_transactions_and_schema_queries_are_not_counted
    counter = count do
      ActiveRecordWorld::Base.transaction { ActiveRecordWorld::Tag.first }
      ActiveRecordWorld::Base.connection.tables
      SequelWorld::DB.transaction { SequelWorld::DB[:tags].first }
    end
    assert_equal 2, counter.queries
  end

  # Rails does so in development, for each database.
  def test_a_check_for_pending_migrations_is_not_counted
    connection = ActiveRecordWorld::Base.connection
    connection.execute("CREATE TABLE IF NOT EXISTS schema_migrations (version varchar PRIMARY KEY)")
    counter = count { Castellan::PendingMigrations.send(:context, ActiveRecordWorld::Base.connection_pool, connection).get_all_versions }
    assert_equal 0, counter.queries
  end

  def test_queries_of_versions_are_counted
    counter = Castellan::Instrument::Counter.new
    text = Castellan::Versions::SQLiteTriggers.current(%w[users])
    2.times { counter.query(text, "Castellan Version", 0, 7, false, 1, nil) }
    counter.query(Castellan::Versions::SQLiteTriggers.ready, "Castellan Version", 0, 7, false, 1, nil)
    assert_equal [2, 14], [counter.queries, counter.sql_ns]
  end

  def test_the_counter_works_together_with_the_detector
    counter = Counter.new
    findings = Castellan::Detect.watch(slow_ms: nil) { Castellan::Recording.open(counter) { ActiveRecordWorld::User.all.to_a.each(&:employee) } }
    assert_equal [1, 6], [findings.size, counter.queries]
  end

  private

  def count(&block) = Counter.new.tap { |counter| Castellan::Instrument.record(counter, &block) }
end
