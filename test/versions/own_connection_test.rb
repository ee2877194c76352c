# frozen_string_literal: true

require "test_helper"
require "active_record"
require "pg"
require "timeout"

# Threads without a connection read versions through one that is not in ActiveRecord's pool.
class OwnConnectionTest < Minitest::Test
  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Post < Record; end

  POSTS = [Castellan::Versions::Dependency.new("posts")].freeze

  def setup
    needs :postgres
    @url = Castellan::TestServers.postgres_url
    @other = PG.connect(@url)
    @other.exec("CREATE SCHEMA shop; CREATE TABLE shop.posts (id serial PRIMARY KEY, title text); " \
                "INSERT INTO shop.posts (title) VALUES ('one')")
    connect
    @versions = Castellan::Versions::ExactVersions.new(Record)
    @versions.install(%w[posts])
    Record.connection_pool.release_connection
  end

  def teardown
    Record.remove_connection if @url
    @other&.close
  end

  def test_it_has_the_settings_of_the_pool_and_sees_each_commit
    without_pool do
      before = version
      assert before, "the table is found only in the search path of the pool"
      @other.exec("UPDATE shop.posts SET title = 'two'")
      refute_equal before, version
    end
  end

  def test_a_connection_that_the_server_ends_is_replaced_and_no_version_is_lost
    before = version
    2.times do
      ended = own_sessions
      assert_equal 1, ended.size
      @other.exec("SELECT pg_terminate_backend(#{ended.first})")
      eventually { own_sessions.empty? }
      assert_equal [before, before], [version, version]
      refute_equal ended, own_sessions
    end
  end

  def test_a_connection_is_not_used_again_after_an_interrupt
    version
    interrupted = own_sessions
    @other.exec("BEGIN; SELECT txid_current(); LOCK TABLE shop.castellan_versions")
    assert_raises(Timeout::Error) { Timeout.timeout(0.3) { version } }
    @other.exec("ROLLBACK")
    eventually { !own_sessions.intersect?(interrupted) }
    without_pool { assert version }
  end

  def test_a_forked_process_leaves_the_connection_to_its_parent
    before = version
    mine = own_sessions
    reader, writer = IO.pipe
    pid = fork do
      writer.write(version)
      exit!(0)
    end
    writer.close
    assert_equal before, reader.read
    Process.wait(pid)
    without_pool { assert_equal before, version }
    eventually { own_sessions == mine } # the server notices a little later that the child has left
  end

  # Such as `SET search_path` for a tenant, which the data is then read with.
  def test_it_is_not_used_if_the_application_changes_connections_at_checkout
    adapter = ActiveRecord::ConnectionAdapters::PostgreSQLAdapter
    change = ->(connection) { connection.execute("SET search_path TO shop") }
    adapter.set_callback(:checkout, :after, change)
    2.times { assert version }
    assert_empty own_sessions
  ensure
    adapter.skip_callback(:checkout, :after, change)
  end

  def test_a_statement_that_fails_leaves_the_connection
    lines = []
    @versions = Castellan::Versions::ExactVersions.new(Record, log: lines.method(:<<))
    before = version && own_sessions
    @other.exec("ALTER TABLE shop.castellan_versions RENAME TO elsewhere")
    2.times { assert_nil version }
    assert_equal 1, lines.size
    @other.exec("ALTER TABLE shop.elsewhere RENAME TO castellan_versions")
    without_pool { assert version }
    assert_equal [1, before], [before.size, own_sessions]
  end

  def test_no_thread_keeps_a_connection_of_the_pool
    notified = Castellan::Versions::NotifiedVersions.new(Record)
    eventually { notified.listening? }
    @versions.install(%w[posts])
    assert @versions.missing(%w[posts none]) == %w[none]
    assert_equal 0, Record.connection_pool.stat[:busy]
  ensure
    notified&.close
  end

  # As a request that finds its document in the cache, while all connections of the pool are in use.
  def test_a_notified_version_is_checked_again_without_the_pool
    notified = Castellan::Versions::NotifiedVersions.new(Record, recheck: 1e-6)
    notified.install(%w[posts])
    Record.connection_pool.release_connection
    eventually { notified.current(POSTS) && notified.listening? }
    before = notified.current(POSTS)
    without_pool { 3.times { assert_equal before, notified.current(POSTS) } }
  ensure
    notified&.close
  end

  def test_another_pool_gets_another_connection
    version
    first = own_sessions
    connect(pool: 3)
    assert version
    eventually { !own_sessions.intersect?(first) }
  end

  def test_with_too_many_connections_the_pool_is_asked
    before = version
    @versions = Castellan::Versions::ExactVersions.new(Record)
    Record.connection # so that the pool has one
    Record.connection_pool.release_connection
    tried = 0
    make = Record.connection_pool.method(:new_connection)
    refused = lambda do
      tried += 1
      make.call.tap { |made| made.define_singleton_method(:raw_connection) { raise ActiveRecord::ConnectionNotEstablished } }
    end
    Record.connection_pool.stub(:new_connection, refused) { 3.times { assert_equal before, version } }
    assert_equal 1, tried, "the next try is a minute later"
  end

  # As in system tests, whose server has threads of its own.
  def test_a_pinned_connection_is_asked_by_all_threads
    notified = Castellan::Versions::NotifiedVersions.new(Record)
    eventually { notified.listening? }
    both = -> { Thread.new { [version, notified.current(POSTS)] }.value }
    before = both.call
    assert_equal before, both.call
    pinned do
      Post.update_all(title: "uncommitted")
      both.call.zip(before) { |now, committed| refute_equal committed, now }
    end
    assert_equal before, both.call
  ensure
    notified&.close
  end

  # As after a request in the transaction of DatabaseCleaner: the next query takes the same connection.
  def test_a_transaction_whose_connection_is_back_in_the_pool_is_one_of_the_thread
    notified = Castellan::Versions::NotifiedVersions.new(Record)
    eventually { notified.listening? }
    both = -> { [version, notified.current(POSTS)] }
    before = both.call
    connection = Record.connection
    connection.begin_transaction(joinable: false)
    Record.connection_pool.release_connection
    Post.update_all(title: "uncommitted")
    Record.connection_pool.release_connection
    assert_equal [nil, nil], both.call
    assert Castellan::Versions::RawConnections.for(Record).transaction?
    connection.rollback_transaction
    assert_equal before, both.call
  ensure
    notified&.close
  end

  def test_threads_that_share_a_pinned_connection_wait_for_each_other
    resource = Class.new(Castellan::Resource) do
      model Post
      type "posts"
      attributes :title
    end
    read = -> { [version, resource.render(Post.order(:id)), Post.pluck(:title)] }
    pinned do
      expected = read.call
      threads = Array.new(6) { Thread.new { Array.new(50) { read.call }.uniq } }
      done = threads.map { |thread| thread.join(10)&.value }
      @other.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()") unless done.all? # they hang
      assert_equal [[expected]] * 6, done
    end
  end

  private

  def connect(**options)
    Record.establish_connection(adapter: "postgresql", url: @url, schema_search_path: "shop", **options)
    Post.table_name = "posts"
    Post.reset_column_information
    Record.connection_pool.release_connection
  end

  # As Rails' transactional tests do.
  def pinned
    pool = Record.connection_pool
    return pin(pool) { yield } if pool.respond_to?(:pin_connection!)

    connection = pool.connection
    pool.lock_thread = true
    connection.begin_transaction(joinable: false)
    begin
      yield
    ensure
      connection.rollback_transaction
      pool.lock_thread = false
      pool.release_connection
    end
  end

  def pin(pool)
    pool.pin_connection!(true)
    yield
  ensure
    pool.unpin_connection!
  end

  def version = @versions.current(POSTS)

  def without_pool(&block)
    Record.connection_pool.stub(:checkout, ->(*) { flunk "the pool was asked" }, &block)
  end

  # @return [Array<String>] process ids of sessions that are not in the pool
  def own_sessions
    pooled = Record.connection_pool.connections.map { |connection| connection.raw_connection.backend_pid }
    @other.exec("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() " \
                "AND backend_type = 'client backend'").column_values(0) - # autovacuum has sessions too
      pooled.map(&:to_s)
  end
end
