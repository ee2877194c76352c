# frozen_string_literal: true

require "test_helper"
require_relative "store_contract"

class MemoryStoreTest < Minitest::Test
  include StoreContract

  def test_what_was_not_read_for_the_longest_time_goes_first
    store = small(10)
    10.times { |i| store.write_multi({ "k#{i}" => "v" * 98 }) }
    store.read_multi(%w[k0])
    store.write_multi({ "new" => "v" * 97 })
    assert_equal %w[k0 k2 new], store.read_multi(%w[k0 k1 k2 new]).keys
  end

  def test_its_bytes_are_bounded_and_counted
    store = small(10)
    1000.times { |i| store.write_multi({ "k#{i % 37}" => "v" * (i % 90) }) }
    assert_operator store.bytesize, :<=, store.max_bytesize
    store.delete_multi(Array.new(37) { |i| "k#{i}" })
    assert_equal [0, 0], [store.bytesize, store.size]
  end

  def test_what_is_too_large_is_not_kept_and_not_named
    store.write_multi({ "a" => "old" })
    assert_equal ["b"], store.write_multi({ "a" => "x" * (store.max_bytesize / 8), "b" => "1" })
    assert_equal({ "b" => "1" }, store.read_multi(%w[a b]), "the old value must not outlive the new one")
  end

  def test_expired_entries_leave_the_count
    now = Castellan::Clock.monotonic_ns
    Castellan::Clock.stub(:monotonic_ns, -> { now }) do
      store.write_multi({ "a" => "1" }, ttl: 5)
      now += 4_999_999_999
      assert_equal %w[a], store.read_multi(%w[a]).keys
      now += 1
      assert_empty store.read_multi(%w[a])
      assert_equal 0, store.bytesize
    end
  end

  def test_an_expired_counter_begins_again
    now = Castellan::Clock.monotonic_ns
    Castellan::Clock.stub(:monotonic_ns, -> { now }) do
      store.write_multi({ "n" => "7" }, ttl: 5)
      assert_equal 8, store.increment("n")
      now += 5_000_000_000
      assert_equal 1, store.increment("n")
    end
  end

  def test_the_writers_later_changes_do_not_reach_the_store
    bytes = +"before"
    store.write_multi({ "a" => bytes })
    bytes << " and after"
    assert_equal "before", store.read_multi(%w[a])["a"]
    assert_predicate store.read_multi(%w[a])["a"], :frozen?
  end

  def test_threads_keep_it_bounded_and_its_count_true
    store = small(50)
    Array.new(4) do |thread|
      Thread.new do
        rng = Random.new(thread)
        500.times do
          store.write_multi({ "k#{rng.rand(200)}" => "v" * rng.rand(200) })
          store.read_multi(Array.new(5) { "k#{rng.rand(200)}" })
          store.delete_multi(["k#{rng.rand(200)}"])
        end
      end
    end.each(&:join)
    assert_operator store.bytesize, :<=, store.max_bytesize
    store.delete_multi(Array.new(200) { |i| "k#{i}" })
    assert_equal 0, store.bytesize
  end

  def test_a_size_that_is_none_is_a_mistake
    assert_raises(Castellan::ConfigurationError) { Castellan::Store::MemoryStore.new(max_bytesize: 0) }
  end

  private

  def store = @store ||= Castellan::Store::MemoryStore.new(max_bytesize: 4 * 1024 * 1024)
  def small(entries) = Castellan::Store::MemoryStore.new(max_bytesize: entries * 300)
end
