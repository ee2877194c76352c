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

  # It would not arrive within the timeout, and the whole store would be skipped.
  def test_a_value_that_is_too_large_is_not_sent
    small = Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, timeout: 5, max_bytesize: 1_000)
    small.write_multi({ key("a") => "before" })
    assert_equal [key("b")], small.write_multi({ key("a") => "x" * 1_001, key("b") => "x" * 1_000 })
    assert_equal [key("b")], small.read_multi([key("a"), key("b")]).keys, "the value before it is gone"
    assert_empty small.write_multi({ key("b") => "x" * 1_001 }, if_absent: true)
    assert_equal({ key("b") => "x" * 1_000 }, small.read_multi([key("b")]))
    assert_empty store.write_multi({ key("c") => "x" * ((8 * 1024 * 1024) + 1) }), "the default"
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::RedisStore.new(url: "redis://x", max_bytesize: "1m") }
    assert_includes error.message, "max_bytesize: must be a whole number of bytes above 0, got \"1m\"; write for example"
  end

  def test_every_operation_without_a_server_is_a_store_error
    server = Castellan::TestServers.start_redis
    store = Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:#{server.port}/0", size: 1, timeout: 5)
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

  def test_an_invalid_option_raises_without_the_password
    url = "redis://:secret@127.0.0.1:1/0"
    example = "write for example url: \"redis://localhost:6379/0\""
    {
      { url: "http://:secret@127.0.0.1" } => "url: must be a URL of redis://, rediss:// or unix://, got an instance of String; #{example}",
      { url: "" } => "url: must be a URL of redis://, rediss:// or unix://, got an empty String; #{example}",
      { url: "redis://:sec ret@127.0.0.1" } => "url: cannot be read (URI::InvalidURIError); write for example url: \"redis://:p%40",
      { url: "redis://:secret@127.0.0.1/zero" } => "url: cannot be read (ArgumentError); write for example ",
      { url: 6379 } => "url: must be a URL of redis://, rediss:// or unix://, got an instance of Integer; #{example}",
      { url: url, size: 0 } => "size: must be a whole number of connections above 0, got 0; write for example size: 5",
      { url: url, size: "5" } => "size: must be a whole number of connections above 0, got \"5\"; ",
      { url: url, timeout: 0 } => "timeout: must be seconds above 0, got 0; write for example timeout: 0.05",
      { url: url, timeout: nil } => "timeout: must be seconds above 0, got nil; ",
      { url: url, namespace: nil } => "namespace: must be a String, got nil; write for example namespace: \"api:\""
    }.each do |options, message|
      error = assert_raises(Castellan::ConfigurationError, message) { Castellan::Store::RedisStore.new(**options) }
      assert_includes error.message, "Castellan::Store::RedisStore #{message}"
      refute_match(/sec ?ret/, error.full_message)
    end
  end

  def test_a_client_together_with_the_options_of_a_pool_raises
    client = RedisClient.config(url: "redis://127.0.0.1:1/0").new_client
    { { url: "redis://127.0.0.1:1/0" } => "a client and url:", { size: 5 } => "a client and size:" }.each do |options, given|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::RedisStore.new(client, **options) }
      assert_includes error.message, "takes either a client or url: and size:, got #{given}; give both to the client"
    end
  end

  def test_a_single_connection_is_refused_because_threads_would_read_each_others_answers
    config = RedisClient.config(url: Castellan::TestServers.redis_url)
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::RedisStore.new(config.new_client) }
    assert_includes error.message, "threads cannot share a RedisClient, which is one connection: write RedisClient.config(url: …).new_pool("
    assert_empty Castellan::Store::RedisStore.new(config.new_pool(size: 1)).read_multi([key("a")])
  end

  private

  # The signal reaches the threads of the server one after the other.
  def halt(server)
    Process.kill(:STOP, server.pid)
    Thread.pass until Dir["/proc/#{server.pid}/task/*/stat"].all? { |path| File.read(path)[/\) (\w)/, 1] == "T" }
  end

  def store = @store ||= Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, timeout: 5)
end
