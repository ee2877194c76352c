# frozen_string_literal: true

require "test_helper"
require_relative "store_contract"

class RedisStoreTest < Minitest::Test
  include StoreContract

  def setup
    needs :redis
    super
  end

  def test_a_namespace_keeps_stores_apart
    other = Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, namespace: key("ns:"), timeout: 5)
    other.write_multi({ key("a") => "1" })
    assert_equal({ key("a") => "1" }, other.read_multi([key("a")]))
    assert_empty store.read_multi([key("a")])
  end

  def test_every_operation_without_a_server_is_a_store_error
    server = Castellan::TestServers.start_redis
    store = Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:#{server.port}/0", size: 1)
    store.write_multi({ "a" => "1" })
    server.stop
    [-> { store.read_multi(%w[a]) }, -> { store.write_multi({ "a" => "1" }) }, -> { store.delete_multi(%w[a]) },
     -> { store.increment("n") }, -> { store.compare_and_delete("a", "1") }].each do |use|
      assert_match(/\ARedisStore: /, assert_raises(Castellan::StoreError, &use).message)
    end
  end

  def test_an_operation_on_a_stopped_server_ends_with_its_timeout
    server = Castellan::TestServers.start_redis
    store = Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:#{server.port}/0", timeout: 1)
    store.write_multi({ "a" => "1" })
    halt(server)
    started_ns = Castellan::Clock.monotonic_ns
    assert_raises(Castellan::StoreError) { store.read_multi(%w[a]) }
    assert_operator Castellan::Clock.monotonic_ns - started_ns, :<, 1_900_000_000, "one attempt of one second"
  end

  def test_a_connection_that_the_server_closed_is_opened_again
    store = Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, size: 1, timeout: 5)
    store.write_multi({ key("a") => "1" })
    admin = RedisClient.new(url: Castellan::TestServers.redis_url)
    admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert_equal({ key("a") => "1" }, store.read_multi([key("a")]))
  end

  def test_incrementing_a_value_that_is_not_a_number_is_a_store_error
    store.write_multi({ key("a") => "x" })
    assert_raises(Castellan::StoreError) { store.increment(key("a")) }
  end

  def test_the_store_requires_a_url_or_client
    assert_raises(Castellan::ConfigurationError) { Castellan::Store::RedisStore.new }
    message = assert_raises(Castellan::ConfigurationError) { Castellan::Store::RedisStore.new("redis://127.0.0.1") }.message
    assert_includes message, "new_pool"
  end

  private

  # The signal reaches the threads of the server one after the other.
  def halt(server)
    Process.kill(:STOP, server.pid)
    Thread.pass until Dir["/proc/#{server.pid}/task/*/stat"].all? { |path| File.read(path)[/\) (\w)/, 1] == "T" }
  end

  def store = @store ||= Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, timeout: 5)
end
