# frozen_string_literal: true

require "test_helper"
require "dalli"
require_relative "store_contract"
require_relative "../support/stalling_proxy"

class MemcachedStoreTest < Minitest::Test
  include StoreContract

  def setup
    needs :memcached
    super
  end

  def test_a_namespace_keeps_stores_apart
    other = Castellan::Store::MemcachedStore.new(address, namespace: "ns:", timeout: 5)
    other.write_multi({ key("a") => "1" })
    assert_equal({ key("a") => "1" }, other.read_multi([key("a")]))
    assert_empty store.read_multi([key("a")])
    assert_raises(Castellan::ConfigurationError) { Castellan::Store::MemcachedStore.new(address, namespace: "two words") }
  end

  def test_an_invalid_option_raises
    { { namespace: nil } => "namespace: must be a String of at most 40 printable ASCII characters, got nil; ",
      { namespace: "é" } => "namespace: must be a String of at most 40 printable ASCII characters, got \"é\"; ",
      { timeout: 0 } => "timeout: must be seconds above 0, got 0; write for example timeout: 0.05",
      { timeout: Float::INFINITY } => "timeout: must be seconds above 0, got Infinity; ",
      { max_bytesize: "1m" } => "max_bytesize: must be a whole number of bytes above 0, got \"1m\"; " }.each do |options, message|
      error = assert_raises(Castellan::ConfigurationError, message) { Castellan::Store::MemcachedStore.new(address, **options) }
      assert_includes error.message, "Castellan::Store::MemcachedStore #{message}"
    end
  end

  def test_a_lifetime_of_a_century_is_one_of_a_year
    store.write_multi({ key("a") => "1" }, ttl: 100 * 365 * 86_400)
    assert_equal({ key("a") => "1" }, store.read_multi([key("a")]))
  end

  def test_a_value_that_is_too_large_is_not_stored
    store.write_multi({ key("a") => "old" })
    assert_equal [key("b")], store.write_multi({ key("a") => "x" * 1024 * 1024, key("b") => "y" * 1_000_000 })
    assert_equal [key("b")], store.read_multi([key("a"), key("b")]).keys
  end

  def test_the_value_of_another_key_is_a_miss
    client = Dalli::Client.new(address, raw: true, protocol: :meta)
    store.write_multi({ "mine#{@prefix.hash}" => "secret" })
    client.set("yours#{@prefix.hash}", client.get("mine#{@prefix.hash}"))
    assert_equal "secret", store.read_multi(["mine#{@prefix.hash}"]).values.first
    assert_empty store.read_multi(["yours#{@prefix.hash}"])
    client.set("foreign#{@prefix.hash}", "\x04\bI\"\x06a")
    assert_empty store.read_multi(["foreign#{@prefix.hash}"])
  end

  # Records that Marshal loaded it, as an attacker's object would run code.
  class Planted
    class << self
      attr_accessor :loaded
    end

    def marshal_dump = []
    def marshal_load(_) = Planted.loaded = true
  end

  def test_a_client_with_marshal_raises
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::MemcachedStore.new(Dalli::Client.new(address, protocol: :meta)) }
    assert_includes error.message, "write Dalli::Client.new(servers, raw: true"
  end

  def test_a_stored_object_is_a_miss_and_is_not_loaded
    Dalli::Client.new(address, protocol: :meta, serializer: Marshal).set("planted#{@prefix.hash}", Planted.new)
    given = Castellan::Store::MemcachedStore.new(Dalli::Client.new(address, raw: true, protocol: :meta), timeout: 5)
    [store, given].each { |store| assert_empty store.read_multi(["planted#{@prefix.hash}"]) }
    refute given.compare_and_delete("planted#{@prefix.hash}", "x")
    assert_nil Planted.loaded
  end

  def test_an_error_of_dalli_for_a_damaged_answer_is_a_store_error
    client = Dalli::Client.new(address, raw: true, protocol: :meta)
    client.define_singleton_method(:get) { |*| raise "[Dalli] No request in progress. This may be a bug in Dalli." }
    damaged = Castellan::Store::MemcachedStore.new(client)
    assert_match(/\AMemcachedStore: RuntimeError: /, assert_raises(Castellan::StoreError) { damaged.read_multi(%w[a]) }.message)
  end

  def test_an_operation_on_a_stopped_server_ends_with_its_timeout
    level = Dalli.logger.level
    Dalli.logger.level = Logger::FATAL
    [->(store) { store.read_multi(%w[a]) }, ->(store) { store.read_multi(%w[a b]) },
     ->(store) { store.write_multi({ "a" => "1" }, if_absent: true) },
     ->(store) { store.increment("n") }].each do |use|
      server = Castellan::TestServers.start_memcached
      store = Castellan::Store::MemcachedStore.new("127.0.0.1:#{server.port}", timeout: 1)
      store.write_multi({ "a" => "1" })
      halt(server)
      started_ns = Castellan::Clock.monotonic_ns
      assert_raises(Castellan::StoreError) { use.call(store) }
      took_ns = Castellan::Clock.monotonic_ns - started_ns
      assert_operator took_ns, :<, 3_900_000_000, "a timeout of one second, or two for two keys"
      server.stop
    end
  ensure
    Dalli.logger.level = level if level
  end

  def test_every_operation_without_a_server_is_a_store_error
    level = Dalli.logger.level
    Dalli.logger.level = Logger::FATAL
    server = Castellan::TestServers.start_memcached
    store = Castellan::Store::MemcachedStore.new("127.0.0.1:#{server.port}", timeout: 5)
    store.write_multi({ "a" => "1" })
    server.stop
    [-> { store.write_multi({ "a" => "1" }) }, -> { store.delete_multi(%w[a]) }, -> { store.increment("n") },
     -> { store.compare_and_delete("a", "1") }].each do |use|
      assert_match(/\AMemcachedStore: /, assert_raises(Castellan::StoreError, &use).message)
    end
    assert_empty(begin
      store.read_multi(%w[a])
    rescue Castellan::StoreError
      []
    end)
  ensure
    Dalli.logger.level = level if level
  end

  # With failover, another server would take the write, and this one would return the old value when it is back.
  def test_a_write_to_one_of_several_servers_that_is_down_is_a_store_error
    level = Dalli.logger.level
    Dalli.logger.level = Logger::FATAL
    proxy = Castellan::StallingProxy.new(Castellan::TestServers.memcached.port)
    store = Castellan::Store::MemcachedStore.new([address, "127.0.0.1:#{proxy.port}"], timeout: 1)
    keys = Array.new(30) { |number| key(number.to_s) }
    assert_equal keys, store.write_multi(keys.to_h { |key| [key, "old"] })
    proxy.stall
    lost = keys.reject { |key| written?(store, key) }
    assert_includes 1..29, lost.size
    assert_equal keys - lost, store.write_multi(keys.to_h { |key| [key, "newer"] })
    assert_equal((keys - lost).to_h { |key| [key, "newer"] }, store.read_multi(keys))
    assert_raises(Castellan::StoreError) { store.delete_multi(keys) }
    assert_empty store.read_multi(keys), "the other server has deleted its keys"
    assert_empty store.read_multi(lost.first(1))
    lost.first(3).each { |key| assert_raises(Castellan::StoreError) { store.delete_multi([key]) } }
  ensure
    proxy&.close
    Dalli.logger.level = level if level
  end

  private

  def written?(store, key)
    store.write_multi({ key => "new" }).any?
  rescue Castellan::StoreError
    false
  end

  # The signal reaches the threads of the server one after the other.
  def halt(server)
    Process.kill(:STOP, server.pid)
    Thread.pass until Dir["/proc/#{server.pid}/task/*/stat"].all? { |path| File.read(path)[/\) (\w)/, 1] == "T" }
  end

  def address = Castellan::TestServers.memcached_url.delete_prefix("memcached://")
  def store = @store ||= Castellan::Store::MemcachedStore.new(address, timeout: 5)
end
