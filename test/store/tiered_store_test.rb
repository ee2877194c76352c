# frozen_string_literal: true

require "test_helper"
require_relative "store_contract"

# Memory before a store that processes share.
class TieredStoreTest < Minitest::Test
  include StoreContract

  LARGE = "x" * 200

  def test_what_was_read_once_is_read_from_memory
    far.write_multi({ key("a") => LARGE })
    2.times { assert_equal LARGE, store.read_multi([key("a")])[key("a")] }
    far.delete_multi([key("a")])
    assert_equal LARGE, store.read_multi([key("a")])[key("a")]
    store.delete_multi([key("a")])
    assert_empty store.read_multi([key("a")])
  end

  def test_small_values_are_those_of_the_shared_store
    store.write_multi({ key("lease") => "mine" })
    store.read_multi([key("lease")])
    far.write_multi({ key("lease") => "theirs" })
    assert_equal "theirs", store.read_multi([key("lease")])[key("lease")]
  end

  def test_a_near_copy_lives_no_longer_than_the_value_that_was_written_or_near_ttl
    now = 0
    Castellan::Clock.stub(:monotonic_ns, -> { now * 1_000_000_000 }) do
      store = tiered(Castellan::Store::MemoryStore.new, near_ttl: 10)
      store.write_multi({ "a" => LARGE, "b" => LARGE })
      store.write_multi({ "c" => LARGE }, ttl: 5)
      assert_equal %w[a b c], store.near.read_multi(%w[a b c]).keys
      now = 5
      assert_equal %w[a b], store.near.read_multi(%w[a b c]).keys
      now = 10
      assert_empty store.near.read_multi(%w[a b c])
      assert_equal %w[a b], store.read_multi(%w[a b c]).keys
    end
  end

  def test_while_the_shared_store_fails_the_near_one_goes_on
    server = Castellan::TestServers.start_redis
    lines = []
    redis = Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:#{server.port}/0", timeout: 5)
    safe = Castellan::Store::FailSafe.new(tiered(redis), log: ->(line) { lines << line })
    safe.write_multi({ "a" => LARGE })
    server.stop
    assert_empty safe.read_multi(%w[other])
    3.times { assert_equal({ "a" => LARGE }, safe.read_multi(%w[a other])) }
    assert_equal 1, lines.size, "one line for each outage"
  end

  def test_what_the_shared_store_did_not_take_is_not_near
    small = Castellan::Store::MemoryStore.new(max_bytesize: 1_000)
    store = tiered(small)
    assert_empty store.write_multi({ "a" => LARGE })
    assert_empty store.read_multi(%w[a])
  end

  def test_a_wrong_lifetime_raises
    [0, -1, nil, Float::INFINITY, "60"].each do |wrong|
      error = assert_raises(Castellan::ConfigurationError) { tiered(far, near_ttl: wrong) }
      assert_equal "Castellan::Store::TieredStore near_ttl: must be seconds above 0, got #{wrong.inspect}; " \
                   "write for example near_ttl: 60", error.message
    end
  end

  def setup
    needs :redis
    super
  end

  private

  def far = @far ||= Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, timeout: 5)
  def store = @store ||= tiered(far)
  def tiered(far, **options) = Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new, far, **options)
end
