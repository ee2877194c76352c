# frozen_string_literal: true

require "test_helper"
require "active_record"
require "rack"
require "sequel"

# Requests that read from a replica note their URLs in the primary database, where the purger finds them. Those of
# another shard are not purged.
class PurgeReplicaTest < Minitest::Test
  class ReplicatedRecord < ActiveRecord::Base
    self.abstract_class = true
  end

  # The replica is a database that refuses writes, without the tables of the purge.
  def setup
    needs :postgres
    @primary_url, @replica_url = Array.new(2) { Castellan::TestServers.postgres_url }
    @primary, @replica = [@primary_url, @replica_url].map { |url| Sequel.connect(url, keep_reference: false) }
    [@primary, @replica].each { |db| db.run("CREATE TABLE notes (id int PRIMARY KEY, text text); INSERT INTO notes VALUES (1, 'a')") }
    @replica.run("ALTER DATABASE #{URI(@replica_url).path[1..]} SET default_transaction_read_only = on")
    @replica.disconnect
  end

  def teardown
    [@primary, @replica, @sequel].compact.each(&:disconnect)
    ReplicatedRecord.connection_handler.remove_connection_pool(ReplicatedRecord.name, role: :writing, shard: :two)
    ReplicatedRecord.remove_connection
  end

  def test_active_record_in_the_reading_role
    writing, reading = [@primary_url, @replica_url].map { |url| { adapter: "postgresql", url: url } }
    ReplicatedRecord.connects_to(database: { writing: writing, reading: reading })
    model = Class.new(ReplicatedRecord) { self.table_name = "notes" }
    app = app(model, ReplicatedRecord)
    assert_noted { ReplicatedRecord.connected_to(role: :reading, prevent_writes: true) { app.call(env) } } # as Rails' DatabaseSelector
  end

  def test_sequel_with_a_read_only_server
    @sequel = Sequel.connect(@primary_url, servers: { read_only: { database: URI(@replica_url).path[1..] } }, keep_reference: false)
    app = app(Class.new(Sequel::Model(@sequel[:notes])), @sequel)
    assert_noted { app.call(env) }
    @sequel.extension(:server_block)
    @primary[:castellan_urls].delete
    assert_noted { @sequel.with_server(:read_only) { app.call(env) } }
  end

  def test_documents_of_another_shard_are_no_cache
    one, two = [@primary_url, Castellan::TestServers.postgres_url].map { |url| { adapter: "postgresql", url: url } }
    ReplicatedRecord.connects_to(shards: { default: { writing: one }, two: { writing: two } })
    model = Class.new(ReplicatedRecord) { self.table_name = "notes" }
    app = app(model, ReplicatedRecord)
    on_two = ->(&block) { ReplicatedRecord.connected_to(shard: :two, &block) }
    on_two.call do
      model.connection.execute("CREATE TABLE notes (id int PRIMARY KEY, text text); INSERT INTO notes VALUES (1, 'b')")
      @purge.install(tables: %w[notes])
    end
    control = -> { app.call(env)[1]["cache-control"] }
    assert_equal "public, s-maxage=600", control.call
    assert_equal ["public, no-cache"] * 2, Array.new(2) { on_two.call(&control) }
    assert_equal "public, s-maxage=600", ReplicatedRecord.connected_to(shard: :default, &control)
    assert_equal(1, @log.count { |line| line.include?("documents of other shards") })
  end

  def test_documents_of_another_server_of_sequel_are_no_cache
    @sequel = Sequel.connect(@primary_url, servers: { two: {} }, keep_reference: false)
    @sequel.extension(:server_block)
    app = app(Class.new(Sequel::Model(@sequel[:notes])), @sequel)
    assert_noted { app.call(env) }
    assert_equal "public, no-cache", @sequel.with_server(:two) { app.call(env) }[1]["cache-control"]
  end

  private

  def app(model, source)
    @log = []
    resource = Class.new(Castellan::Resource) do
      model model
      type "notes"
      attributes :text
      cache_control s_maxage: 600
    end
    proxy = Castellan::Purge::Refresh.new("http://127.0.0.1:1")
    purge = @purge = Castellan::Purge.new(source, proxy, again_after: nil, log: @log.method(:<<))
    purge.install(resource)
    Castellan.app do
      resource resource
      purge purge
    end
  end

  def env = Rack::MockRequest.env_for("/notes/1", "HTTP_ACCEPT" => "application/vnd.api+json", "HTTP_HOST" => "example.org")

  def assert_noted
    status, fields, = yield
    assert_equal [200, "public, s-maxage=600"], [status, fields["cache-control"]]
    assert_equal ["/notes/1"], @primary[:castellan_urls].distinct.select_map(:url)
    @primary.run("UPDATE notes SET text = 'b'")
    error = assert_raises(Castellan::Purge::Error) { @purge.call }
    assert_includes error.message, "does not answer"
  end
end
