# frozen_string_literal: true

require "test_helper"
require "objspace"
require_relative "store_contract"

class MemoryStoreTest < Minitest::Test
  class Interruption < StandardError; end

  include StoreContract

  def test_the_least_recently_used_value_is_evicted_first
    store = small(10)
    10.times { |i| store.write_multi({ "k#{i}" => "v" * 98 }) }
    store.read_multi(%w[k0])
    store.write_multi({ "new" => "v" * 97 })
    assert_equal %w[k0 k2 new], store.read_multi(%w[k0 k1 k2 new]).keys
  end

  def test_values_that_are_read_once_evict_nothing_that_is_read_often
    store = small(10)
    4.times { |i| store.write_multi({ "hot#{i}" => "v" * 96 }) && store.read_multi(["hot#{i}"]) }
    1_000.times { |i| store.write_multi({ "once#{i}" => "v" * 90 }) }
    assert_equal 4, store.read_multi(Array.new(4) { |i| "hot#{i}" }).size
  end

  def test_protected_values_make_room_for_those_that_are_read_now
    store = small(10)
    30.times { |i| store.write_multi({ "k#{i}" => "v" * 96 }) && store.read_multi(["k#{i}"]) }
    assert_operator store.bytesize, :<=, store.max_bytesize
    assert_equal %w[k29 k28], store.read_multi(%w[k29 k28]).keys
    assert_empty store.read_multi(%w[k0 k1])
  end

  # The memory of a document of 4 kB, with its key, its objects and its places in the hashes.
  def test_a_cached_byte_costs_at_most_one_and_fifteen_hundredths
    layer = Castellan::Cache::DocumentLayer.new(store: store)
    bytes = "x" * 4_000
    500.times { |i| layer.fetch(Castellan::Cache::Key.for([i])) { bytes } }
    counted = store.bytesize.fdiv(500 * 4_000)
    assert_operator counted, :<=, 1.15
    entries = store.instance_variable_get(:@probation)
    measured = ObjectSpace.memsize_of(entries) + entries.sum { |key, entry|
      [key, entry, entry.bytes].sum { |one|
        ObjectSpace.memsize_of(one)
      }
    }
    assert_operator measured, :<=, store.bytesize, "more than is counted"
  end

  def test_its_bytes_are_bounded_and_counted
    store = small(10)
    1000.times { |i| store.write_multi({ "k#{i % 37}" => "v" * (i % 90) }) }
    assert_operator store.bytesize, :<=, store.max_bytesize
    store.delete_multi(Array.new(37) { |i| "k#{i}" })
    assert_equal [0, 0], [store.bytesize, store.size]
  end

  def test_a_value_that_is_too_large_is_not_stored
    store.write_multi({ "a" => "old" })
    assert_equal ["b"], store.write_multi({ "a" => "x" * (store.max_bytesize / 8), "b" => "1" })
    assert_equal({ "b" => "1" }, store.read_multi(%w[a b]), "the old value must not outlive the new one")
  end

  def test_expired_entries_are_not_counted
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

  def test_an_expired_counter_restarts
    now = Castellan::Clock.monotonic_ns
    Castellan::Clock.stub(:monotonic_ns, -> { now }) do
      store.write_multi({ "n" => "7" }, ttl: 5)
      assert_equal 8, store.increment("n")
      now += 5_000_000_000
      assert_equal 1, store.increment("n")
    end
  end

  def test_later_changes_of_a_written_string_do_not_reach_the_store
    bytes = +"before"
    store.write_multi({ "a" => bytes })
    bytes << " and after"
    assert_equal "before", store.read_multi(%w[a])["a"]
    assert_predicate store.read_multi(%w[a])["a"], :frozen?
  end

  def test_it_stays_bounded_and_counts_correctly_with_threads
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

  def test_an_interrupt_anywhere_leaves_no_bytes_counted
    left = (1..60).map do |step|
      store = small(18)
      keys = Array.new(20) { |i| "k#{i}" }
      2.times { keys.each { |key| store.write_multi({ key => "v" * 90 }) && store.read_multi(keys) } }
      interrupted_at(step) { store.write_multi({ "new" => "v" * 90 }) }
      store.delete_multi([*keys, "new"])
      store.bytesize
    end
    assert_equal [0], left.uniq
  end

  def test_an_invalid_size_raises
    [0, -1, 1.5, nil, "64"].each do |wrong|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::MemoryStore.new(max_bytesize: wrong) }
      assert_equal "Castellan::Store::MemoryStore max_bytesize: must be a whole number of bytes above 0, got #{wrong.inspect}; " \
                   "write for example max_bytesize: 64 * 1024 * 1024", error.message
    end
  end

  private

  # Interrupts this thread, as Thread#raise of another one does, before the given line of the store that runs.
  def interrupted_at(number, &block)
    file = Castellan::Store::MemoryStore.instance_method(:write_multi).source_location.first
    seen = 0
    trace = TracePoint.new(:line) { |point| Thread.current.raise(Interruption) if point.path == file && (seen += 1) == number }
    trace.enable(target_thread: Thread.current, &block)
  rescue Interruption
    nil
  end

  def store = @store ||= Castellan::Store::MemoryStore.new(max_bytesize: 4 * 1024 * 1024)
  def small(entries) = Castellan::Store::MemoryStore.new(max_bytesize: entries * 300)
end
