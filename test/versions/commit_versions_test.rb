# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require_relative "../store/slow_store"

class CommitVersionsTest < Minitest::Test
  class Record < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
  end

  class Post < Record; end

  def setup
    super
    @store = SlowStore.new
    @lines = []
    @versions = Castellan::Versions::CommitVersions.new(@store, log: ->(line) { @lines << line })
  end

  def test_the_token_stays_until_something_changes
    token = current("posts", "authors")
    assert_match(/\A\h{16}\.\h{16}\z/, token)
    assert_equal token, current("posts", "authors")
    @versions.changed(%w[authors])
    refute_equal token, current("posts", "authors")
    assert_equal token.split(".").first, current("posts")
  end

  def test_an_evicted_token_never_returns
    tokens = Array.new(20) { current("posts").tap { @store.clear } }
    assert_equal 20, tokens.uniq.size
  end

  def test_concurrent_first_readers_get_one_token
    tokens = Array.new(8) { Thread.new { current("posts") } }.map(&:value)
    assert_equal 1, tokens.uniq.size
  end

  def test_active_record_changes_the_token_after_the_commit
    Record.connection.create_table(:posts, force: true) { |table| table.string :title }
    @versions.watch(Post)
    check_model(rollback: ActiveRecord::Rollback, transaction: ->(&block) { Post.transaction(&block) },
                create: -> { Post.create!(title: "a") }, update: -> { Post.last.update!(title: "b") }, destroy: -> { Post.last.destroy! })
  end

  # Such as one that broadcasts a cached document of the record.
  def test_callbacks_of_the_model_see_the_new_token
    Record.connection.create_table(:posts, force: true) { |table| table.string :title }
    [true, false].each do |in_order|
      ActiveRecord.stub(:run_after_transaction_callbacks_in_order_defined, in_order) do
        seen = []
        token = -> { seen << current("posts") }
        model = Class.new(Record) { self.table_name = "posts" }
        model.after_commit { token.call }
        @versions.watch(model)
        token.call
        model.create!(title: "a")
        assert_equal 2, seen.uniq.size
      end
    end
  end

  def test_sequel_changes_the_token_after_the_commit
    database = Sequel.sqlite
    database.run("CREATE TABLE posts (id integer PRIMARY KEY, title text)")
    model = Class.new(Sequel::Model(database[:posts]))
    @versions.watch(model)
    check_model(rollback: Sequel::Rollback, transaction: ->(&block) { database.transaction(&block) },
                create: -> { model.create(title: "a") }, update: -> { model.first.update(title: "b") }, destroy: -> { model.first.destroy })
  ensure
    forget(database)
  end

  # Its reads may be rolled back, or be as old as its first query.
  def test_within_a_transaction_there_is_no_token
    database = Sequel.sqlite
    database.run("CREATE TABLE posts (id integer PRIMARY KEY)")
    @versions.watch(Post, Sequel::Model(database[:posts]))
    [Post, database].each do |source|
      source.transaction { assert_nil current("posts") }
      assert current("posts")
    end
    Post.transaction { assert Thread.new { current("posts") }.value }
  ensure
    forget(database)
  end

  def test_the_tables_of_a_sequel_model_are_those_that_depends_on_names
    database = Sequel.sqlite
    database.run("CREATE TABLE employees (id integer PRIMARY KEY, kind text); " \
                 "CREATE TABLE managers (id integer PRIMARY KEY REFERENCES employees, num integer); ATTACH ':memory:' AS billing; " \
                 "CREATE TABLE billing.invoices (id integer PRIMARY KEY, name text)")
    employee = self.class.const_set(:Employee, Sequel::Model(database[:employees]))
    employee.plugin :class_table_inheritance, key: :kind
    manager = self.class.class_eval("class Manager < Employee; self; end", __FILE__, __LINE__) # a class needs its name at once
    invoice = Class.new(Sequel::Model(database[Sequel[:billing][:invoices]]))
    @versions.watch(employee, invoice)
    { "managers" => -> { manager.create(num: 1) }, "billing.invoices" => -> { invoice.create(name: "a") } }.each do |table, change|
      before = current(table)
      change.call
      refute_equal before, current(table), table
    end
  ensure
    forget(database)
  end

  def test_databases_that_share_a_store_have_other_tokens
    tokens = %w[one two].map do |name|
      database = Sequel.sqlite
      database.run("CREATE TABLE posts (id integer PRIMARY KEY)")
      database.opts[:database] = name
      Castellan::Versions::CommitVersions.new(@store).tap { |versions| versions.watch(Sequel::Model(database[:posts])) }
    end
    one, two = tokens.map { |versions| versions.current([Castellan::Versions::Dependency.new("posts")]) }
    assert_equal current("posts"), one[/\A\h+/]
    refute_equal one, two
  end

  def test_a_failing_store_returns_no_token_and_is_logged
    @store.broken = true
    assert_nil current("posts")
    @versions.changed(%w[posts])
    assert_equal 2, @lines.size
    assert_match(/its store fails: connection refused/, @lines.first)
    assert_match(/posts changed, and cached answers stay/, @lines.last)
  end

  def test_a_store_that_times_out_is_skipped_for_a_while
    @store.broken = true
    @store.clocked do
      assert_nil current("posts")
      assert_equal SlowStore::SECOND, @store.now, "what cannot be read is not drawn"
      9.times { assert_nil current("posts") }
      assert_equal SlowStore::SECOND, @store.now, "the first failure is enough"
      @versions.changed(%w[posts])
      assert_equal 2 * SlowStore::SECOND, @store.now, "a change is written all the same"
      @store.broken = false
      @store.now += 5 * SlowStore::SECOND
      assert_match(/\A\h{16}\z/, current("posts"))
    end
  end

  def test_a_change_that_the_store_did_not_take_is_written_before_the_next_token
    token = current("posts")
    @store.broken = true
    @versions.changed(%w[posts])
    @store.broken = false
    refute_equal token, current("posts")
    assert_equal current("posts"), current("posts")
  end

  def test_a_cache_that_hides_its_failures_gives_no_token_of_the_time_before_the_change
    cache = Class.new(ActiveSupport::Cache::MemoryStore) do
      attr_accessor :broken

      # Rails 8.1 needs one
      def self.name = "HidingStore"
      def write_entry(...) = broken ? false : super
    end.new
    versions = Castellan::Versions::CommitVersions.new(Castellan::Store::ActiveSupportStore.new(cache), log: ->(line) { @lines << line })
    posts = [Castellan::Versions::Dependency.new("posts")]
    token = versions.current(posts)
    cache.broken = true
    2.times { versions.changed(%w[posts]) }
    assert_equal 1, @lines.size
    assert_nil versions.current(posts)
    cache.broken = false
    refute_includes [nil, token], versions.current(posts)
  end

  def test_a_null_store_returns_no_token
    assert_nil Castellan::Versions::CommitVersions.new(Castellan::Store::NullStore.new).current([Castellan::Versions::Dependency.new("a")])
  end

  def test_watching_another_class_than_a_model_raises
    assert_raises(Castellan::ConfigurationError) { @versions.watch(String) }
  end

  private

  def current(*tables) = @versions.current(tables.map { |table| Castellan::Versions::Dependency.new(table) })

  def check_model(rollback:, transaction:, create:, update:, destroy:)
    [create, update, destroy].each do |change|
      token = current("posts")
      change.call
      refute_equal token, current("posts")
    end
    token = current("posts")
    transaction.call do
      create.call
      assert_equal token, Thread.new { current("posts") }.value, "not before the commit"
      raise rollback
    end
    assert_equal token, current("posts")
  end
end
