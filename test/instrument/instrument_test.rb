# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../detect/active_record_world"
require_relative "../detect/sequel_world"

class InstrumentTest < Minitest::Test
  Instrument = Castellan::Instrument

  def test_subscriptions_are_counted
    before = subscribers
    2.times { Instrument.subscribe }
    assert_equal before + 1, subscribers
    Instrument.unsubscribe
    assert_predicate Instrument, :subscribed?
    Instrument.unsubscribe
    refute_predicate Instrument, :subscribed?
    Instrument.unsubscribe
    assert_equal before, subscribers
  end

  def test_a_statement_notifies_once_with_several_subscriptions
    2.times { Instrument.subscribe }
    counter = Instrument::Counter.new
    Castellan::Recording.open(counter) { [ActiveRecordWorld::User.first, SequelWorld::User.first] }
    assert_equal 2, counter.queries
  ensure
    2.times { Instrument.unsubscribe }
  end

  def test_there_are_no_notifications_after_unsubscribing
    counter = Instrument::Counter.new
    Instrument.record(counter) { nil }
    Castellan::Recording.open(counter) { [ActiveRecordWorld::User.first, SequelWorld::User.first] }
    assert_equal 0, counter.queries
  end

  def test_castellan_off_subscribes_to_nothing
    with_env("CASTELLAN" => "off") { Instrument.subscribe }
    refute_predicate Instrument, :subscribed?
  end

  def test_a_library_loaded_later_is_attached_at_the_next_recording
    output = ruby(<<~RUBY)
      require "castellan/instrument"
      Castellan::Instrument.subscribe
      require "sequel"
      counter = Castellan::Instrument::Counter.new
      database = Sequel.sqlite.freeze
      database.sqlite_version
      Castellan::Instrument.record(counter) { database.fetch("SELECT 1 AS one").all }
      print counter.queries
    RUBY
    assert_equal "1", output
  end

  def test_libraries_are_searched_only_after_a_file_was_loaded
    Instrument.subscribe
    attached = 0
    Instrument::SequelInstrument.stub(:attach, -> { attached += 1 }) do
      Instrument.attach
      assert_equal 0, attached
      Dir.mktmpdir { |directory| require File.join(directory, "later.rb").tap { |file| File.write(file, "") } }
      Instrument.attach
      assert_equal 1, attached
    end
  ensure
    Instrument.unsubscribe
  end

  CORE = "[Kernel, Kernel.singleton_class, IO, IO.singleton_class, Thread, Thread.singleton_class, ConditionVariable, Queue, SizedQueue, " \
         "Fiber, Fiber.singleton_class]"
  private_constant :CORE

  def test_detection_in_production_patches_no_class_of_ruby_nor_of_a_driver
    assert_equal "[]", ruby(<<~RUBY)
      require "active_record"
      require "sqlite3"
      before = (core = #{CORE} + [SQLite3::Database, SQLite3::Statement]).map(&:ancestors)
      require "castellan"
      watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: false)
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
      watch.call(->(_env) { ActiveRecord::Base.connection.select_value("SELECT 1") && [200, {}, []] }, {})
      print core.map(&:ancestors).zip(before).flat_map { |now, was| now - was }.select { |one| one.to_s.start_with?("Castellan") }
    RUBY
  end

  def test_nothing_is_prepended_before_the_first_subscription
    assert_equal "[]", ruby(<<~RUBY)
      require "active_record"
      types = [ActiveRecord::Relation, ActiveRecord::Associations::Association, ActiveRecord::Associations::JoinDependency] + #{CORE}
      before = types.map(&:ancestors)
      require "castellan/instrument/threads"
      require "castellan/instrument/drivers"
      print types.map(&:ancestors).zip(before).flat_map { |now, was| now - was }
    RUBY
  end

  def test_it_loads_no_orm
    assert_equal "[]", ruby(<<~RUBY)
      require "castellan/instrument"
      Castellan::Instrument.subscribe
      print $LOADED_FEATURES.grep(%r{/gems/(?:activerecord|sequel)})
    RUBY
  end

  BOOKS = <<~RUBY
    require "active_record"
    require "castellan/detect"
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    ActiveRecord::Base.connection.create_table(:pages) { |table| table.integer :book_id }
    ActiveRecord::Base.connection.create_table(:books)
    class Page < ActiveRecord::Base; end
    class Book < ActiveRecord::Base
      has_many :pages
    end
  RUBY

  # `evidence:` may be the first that observes ActiveRecord, e.g. when it is loaded by a request.
  def test_reads_of_ids_notify_whichever_instrument_is_attached_first
    assert_equal ":pages", ruby(<<~RUBY)
      #{BOOKS}
      Book.create
      Castellan::Instrument::EagerInstrument.subscribe
      tally = Castellan::Detect::Tally.new
      Castellan::Instrument.record(tally) { Book.first.page_ids }
      print tally.groups.last.association.inspect
    RUBY
  end

  # As goldiloader and agents that measure do.
  def test_modules_that_other_gems_prepended_before_do_not_count
    assert_equal "[:pages, 2]", ruby(<<~RUBY)
      #{BOOKS}
      2.times { Book.create }
      anything = ->(name) { Module.new { define_method(name) { |*arguments, **keywords, &block| super(*arguments, **keywords, &block) } } }
      ActiveRecord::Associations::CollectionAssociation.prepend(anything.(:ids_reader))
      ActiveRecord::Querying.prepend(anything.(:_load_from_sql))
      tally = Castellan::Detect::Tally.new
      Castellan::Instrument.record(tally) { Book.all.each(&:page_ids) }
      print [tally.groups.last.association, tally.loads.sum(&:count)]
    RUBY
  end

  def test_asynchronous_statements_notify_when_their_result_is_read
    output = ruby(<<~RUBY)
      require "active_record"
      require "castellan/instrument"
      ActiveRecord.async_query_executor = :global_thread_pool
      Dir.mktmpdir do |directory|
        ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: File.join(directory, "a.sqlite3"), pool: 5)
        ActiveRecord::Schema.verbose = false
        ActiveRecord::Schema.define { create_table(:users) }
        Object.const_set(:User, Class.new(ActiveRecord::Base) { self.table_name = "users" })
        User.first
        counter = Castellan::Instrument::Counter.new
        ActiveRecord::Base.asynchronous_queries_tracker.start_session # as Rails' executor does
        Castellan::Instrument.record(counter) { User.all.load_async.to_a }
        print counter.queries, " ", counter.sql_ns.between?(1, 10_000_000_000)
      end
    RUBY
    assert_equal "1 true", output
  end

  private

  def subscribers = ActiveSupport::Notifications.notifier.all_listeners_for("sql.active_record").size

  def ruby(code) = run_ruby("-rtmpdir", "-e", code)
end
