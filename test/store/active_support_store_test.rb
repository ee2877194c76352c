# frozen_string_literal: true

require "test_helper"
require "active_support"
require "active_support/cache"
require_relative "store_contract"

class ActiveSupportMemoryStoreTest < Minitest::Test
  include StoreContract

  def test_values_that_are_not_strings_are_a_miss
    cache = ActiveSupport::Cache::MemoryStore.new
    cache.write("a", { "a" => 1 })
    assert_empty Castellan::Store::ActiveSupportStore.new(cache, deadline: 60).read_multi(%w[a])
  end

  def test_a_cache_whose_writes_are_not_atomic_gives_no_leases
    Dir.mktmpdir do |dir|
      store = Castellan::Store::ActiveSupportStore.new(ActiveSupport::Cache::FileStore.new(dir), deadline: 60)
      refute store.supports?(:lease)
      assert_empty Castellan::Store::Linter.new(store).defects
    end
  end

  # Its `write` returns true, and the response would have `Cache-Status: …; stored`.
  def test_the_null_store_of_rails_takes_no_value
    store = Castellan::Store::ActiveSupportStore.new(ActiveSupport::Cache::NullStore.new, deadline: 60)
    assert_empty store.write_multi({ "a" => "1" })
  end

  def test_any_error_of_the_cache_is_a_store_error
    cache = Class.new(ActiveSupport::Cache::MemoryStore) { def read_multi(*, **) = raise(ArgumentError, "no") }.new
    store = Castellan::Store::ActiveSupportStore.new(cache, deadline: 60)
    assert_match(/ArgumentError: no/, assert_raises(Castellan::StoreError) { store.read_multi(%w[a]) }.message)
  end

  # Rails' RedisCacheStore tells only its error_handler. Each request would wait for the server again.
  def test_a_redis_cache_store_whose_server_is_gone_is_a_store_that_fails
    needs :redis
    require "active_support/cache/redis_cache_store"
    told = []
    cache = ActiveSupport::Cache::RedisCacheStore.new(url: "redis://127.0.0.1:#{free_port}", namespace: "app",
                                                      error_handler: ->(method:, **) { told << method })
    lines = []
    safe = Castellan::Store::FailSafe.new(cache, log: ->(line) { lines << line })
    assert_nil safe.acquire("lease", "me", ttl: 10), "nobody holds it"
    10.times { assert_empty safe.read_multi(%w[a]) }
    assert_match(/\Acastellan: the cache is skipped, because its store fails: ActiveSupportStore: Redis::CannotConnectError/, lines.first)
    assert_equal 1, lines.size
    assert_equal [:write_entry], told.uniq & [:write_entry], "the application's handler is still called"
    assert_nil cache.write("a", "1"), "the application's cache goes on hiding it"
  end

  def test_an_object_without_the_methods_of_a_cache_raises
    assert_includes assert_raises(Castellan::ConfigurationError) { Castellan::Store::ActiveSupportStore.new({}) }.message, "Rails.cache"
  end

  private

  def store = @store ||= Castellan::Store::ActiveSupportStore.new(ActiveSupport::Cache::MemoryStore.new, deadline: 60)
end

class ActiveSupportMemCacheStoreTest < Minitest::Test
  def test_an_invalid_deadline_raises
    cache = ActiveSupport::Cache::MemoryStore.new
    [0, -1, nil, "1", Float::NAN].each do |wrong|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::ActiveSupportStore.new(cache, deadline: wrong) }
      assert_includes error.message,
                      "ActiveSupportStore deadline: must be seconds above 0, got #{wrong.inspect}; write for example deadline: 1"
    end
    assert Castellan::Store::ActiveSupportStore.new(cache, deadline: ActiveSupport::Duration.build(2))
  end

  def test_a_cache_that_loads_with_marshal_raises
    cache = ActiveSupport::Cache::MemCacheStore.new("127.0.0.1:11211", protocol: :meta)
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::ActiveSupportStore.new(cache) }
    assert_includes error.message, "write Castellan::Store::MemcachedStore.new("
  end
end
