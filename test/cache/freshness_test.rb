# frozen_string_literal: true

require "test_helper"
require "active_support"
require "active_support/notifications"
require_relative "broken_store"

# A layer around the end of its bytes: answers and notifications.
# rubocop:disable-next Style/RedundantFetchBlock -- not Hash#fetch: the block computes what is kept
class CacheFreshnessTest < Minitest::Test
  # Both clocks stand still but for {#at}.
  def run
    now = -> { @at.to_i }
    Castellan::Clock.stub(:wall_ms, -> { 1_000_000 + now.call }) do
      Castellan::Clock.stub(:monotonic_ns, -> { now.call * 1_000_000 }) { super }
    end
  end

  def setup
    @store = Castellan::Store::MemoryStore.new
    @random = 0.5
    @layer = Castellan::Cache::DocumentLayer.new(store: @store, random: -> { @random })
  end

  def test_bytes_are_used_until_they_expire
    at(0) { assert_equal "1", @layer.fetch("k", freshness: freshness(expires_in: 10)) { "1" } }
    at(9_999) { assert_equal "1", @layer.fetch("k", freshness: freshness(expires_in: 10)) { flunk } }
    at(10_000) { assert_equal "2", @layer.fetch("k", freshness: freshness(expires_in: 10)) { "2" } }
  end

  def test_a_clock_of_another_machine_that_is_ahead_keeps_bytes_no_longer
    at(60_000) { @layer.fetch("k", freshness: freshness(expires_in: 10)) { "ahead" } }
    at(0) { assert_equal "ahead", @layer.fetch("k", freshness: freshness(expires_in: 10)) { flunk } }
  end

  # XFetch: with a cost of 100 ms and a random number of 0.5, the last 69 ms are early.
  def test_one_reader_computes_a_little_before_the_end
    at(0) { fill("k", "1", cost_ms: 100) }
    at(9_930) { assert_equal "1", @layer.fetch("k", freshness: freshness(expires_in: 10)) { flunk } }
    at(9_931) { assert_equal "2", @layer.fetch("k", freshness: freshness(expires_in: 10)) { "2" } }
    at(19_000) { assert_equal "2", @layer.fetch("k", freshness: freshness(expires_in: 10)) { flunk } }
  end

  def test_a_slow_computation_replaces_neither_bytes_nor_a_version_that_were_computed_from_newer_rows
    other = Castellan::Cache::DocumentLayer.new(store: @store)
    at(0) do
      @layer.fetch("v1", freshness: freshness(stale_while_revalidate: 5), latest: "latest") do
        at(100) { other.fetch("v2", freshness: freshness(stale_while_revalidate: 5), latest: "latest") { "2" } }
        "1"
      end
      assert_equal "v2", @layer.entry("latest").bytes
      slow = @layer.fetch("k", freshness: freshness(expires_in: 10)) do
        at(200) { other.fetch("k", freshness: freshness(expires_in: 10)) { "new" } }
        "old"
      end
      assert_equal %w[new new], [slow, @layer.entry("k").bytes]
    end
  end

  # With leases, as processes that share a store have them.
  def test_one_process_computes_a_little_before_the_end
    shared = Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new(max_bytesize: 1), @store)
    one, other = Array.new(2) { Castellan::Cache::DocumentLayer.new(store: shared, random: -> { @random }) }
    at(0) { fill("k", "1", cost_ms: 100) }
    at(9_931) do
      assert_equal("2", one.fetch("k", freshness: freshness(expires_in: 10)) do
        assert_equal("1", other.fetch("k", freshness: freshness(expires_in: 10)) { flunk })
        "2"
      end)
    end
    at(19_000) { assert_equal "2", other.fetch("k", freshness: freshness(expires_in: 10)) { flunk } }
    assert_empty @store.read_multi(["k:lease"])
  end

  def test_an_early_refresh_that_raises_leaves_the_bytes
    at(0) { fill("k", "1", cost_ms: 100) }
    at(9_990) { assert_equal "1", @layer.fetch("k", freshness: freshness(expires_in: 10)) { raise IOError } }
    at(10_000) { assert_raises(IOError) { @layer.fetch("k", freshness: freshness(expires_in: 10)) { raise IOError } } }
  end

  def test_other_threads_get_expired_bytes_while_one_computes
    allowed = freshness(expires_in: 10, stale_while_revalidate: 5)
    at(0) { @layer.fetch("k", freshness: allowed) { "1" } }
    computing(allowed, 12_000) { at(12_000) { assert_equal "1", @layer.fetch("k", freshness: allowed) { flunk } } }
    at(12_001) { assert_equal "2", @layer.fetch("k", freshness: allowed) { flunk } }
  end

  def test_after_the_allowed_time_threads_wait
    allowed = freshness(expires_in: 10, stale_while_revalidate: 5)
    at(0) { @layer.fetch("k", freshness: allowed) { "1" } }
    waiting = nil
    computing(allowed, 15_001) do
      waiting = Thread.new { @layer.fetch("k", freshness: allowed) { flunk } }
      Thread.pass until waiting.stop?
    end
    assert_equal "2", waiting.value
  end

  def test_expired_bytes_are_served_if_the_computation_raises
    allowed = freshness(expires_in: 10, stale_if_error: 60)
    at(0) { @layer.fetch("k", freshness: allowed) { "1" } }
    at(69_999) { assert_equal "1", @layer.fetch("k", freshness: allowed) { raise IOError } }
    at(70_001) { assert_raises(IOError) { @layer.fetch("k", freshness: allowed) { raise IOError } } }
  end

  def test_the_version_before_is_served_while_one_thread_computes_the_next
    allowed = freshness(stale_while_revalidate: 5)
    one, two = %w[one two].map { |name| Castellan::Cache::Key.for([name]) }
    at(0) { @layer.fetch(one, freshness: allowed, latest: "latest") { "1" } }
    computing(allowed, 90_000, two) do
      at(90_000) {
        assert_equal [one, "1"], @layer.find(two, freshness: allowed, latest: "latest") {
          flunk
        }.then { |entry| [entry.key, entry.bytes] }
      }
    end
    at(90_001) { assert_equal "2", @layer.fetch(two, freshness: allowed, latest: "latest") { flunk } }
  end

  def test_the_version_before_is_served_if_the_next_one_cannot_be_computed_and_no_longer_than_allowed
    allowed = freshness(stale_if_error: 60)
    one, two = %w[one two].map { |name| Castellan::Cache::Key.for([name]) }
    at(0) { @layer.fetch(one, freshness: allowed, latest: "latest") { "1" } }
    [500_000, 560_000].each { |time|
      at(time) {
        assert_equal "1", @layer.fetch(two, freshness: allowed, latest: "latest") {
          raise IOError
        }
      }
    }
    at(560_001) { assert_raises(IOError) { @layer.fetch(two, freshness: allowed, latest: "latest") { raise IOError } } }
  end

  def test_the_time_since_a_version_was_replaced_does_not_begin_again
    allowed = freshness(stale_if_error: 60)
    at(0) { @layer.fetch("one", freshness: allowed, latest: "latest") { "1" } }
    at(1_000) { assert_equal "1", @layer.fetch("two", freshness: allowed, latest: "latest") { raise IOError } }
    at(500_000) { assert_raises(IOError) { @layer.fetch("two", freshness: allowed, latest: "latest") { raise IOError } } }
  end

  # A store of the process keeps a copy longer than the document is used.
  def test_a_process_does_not_take_expired_bytes_for_those_of_another
    shared = Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new, @store)
    layer = Castellan::Cache::DocumentLayer.new(store: shared)
    at(0) do
      fill("k", "1" * 200, cost_ms: 0)
      layer.fetch("k", freshness: freshness(expires_in: 10)) { flunk }
    end
    at(11_000) do
      @store.write_multi({ "k:lease" => "another process" })
      reader = Thread.new { layer.fetch("k", freshness: freshness(expires_in: 10)) { "2" } }
      Thread.pass until reader.status == "sleep"
      @store.delete_multi(["k:lease"])
      assert_equal "2", reader.value
    end
  end

  def test_bytes_of_another_process_replace_an_expired_copy_in_memory
    one, other = Array.new(2) do
      store = Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new, @store)
      Castellan::Cache::DocumentLayer.new(store: store)
    end
    [{}, { stale_while_revalidate: 30 }, { stale_if_error: 30 }].each_with_index do |stale, n|
      allowed = freshness(expires_in: 10, **stale)
      read = ->(layer, digit) { layer.fetch("k#{n}", freshness: allowed) { digit ? digit * 200 : flunk } }
      at(0) { assert_equal "1" * 200, [read.call(one, "1"), read.call(other, nil)].uniq.join }
      at(10_000) { assert_equal "2" * 200, read.call(one, "2") }
      at(10_001) { assert_equal "2" * 200, read.call(other, nil), stale }
    end
  end

  def test_nothing_stale_is_served_where_nothing_is_declared
    one, two = %w[one two].map { |name| Castellan::Cache::Key.for([name]) }
    @layer.fetch(one, latest: "latest") { "1" }
    assert_raises(IOError) { @layer.fetch(two, latest: "latest") { raise IOError } }
    assert_equal [one], @store.read_multi([one, two, "latest"]).keys
  end

  def test_a_pointer_that_is_no_key_is_ignored
    allowed = freshness(stale_if_error: 60)
    [1.to_s, "castellan:1:none", "\xFF"].each do |pointer|
      @store.write_multi({ "latest" => pointer })
      assert_raises(IOError) { @layer.fetch("k", freshness: allowed, latest: "latest") { raise IOError } }
    end
  end

  def test_each_read_and_write_notifies_with_bytes_and_age
    seen = []
    subscriber = ActiveSupport::Notifications.subscribe("cache.castellan") { |event| seen << event.payload }
    at(0) { @layer.fetch("k", freshness: freshness(expires_in: 10, stale_if_error: 5)) { "12345" } }
    at(2_000) { @layer.fetch("k", freshness: freshness(expires_in: 10, stale_if_error: 5)) { flunk } }
    at(11_000) { @layer.fetch("k", freshness: freshness(expires_in: 10, stale_if_error: 5)) { raise IOError } }
    assert_equal %i[miss fill hit miss error], seen.map { |payload| payload[:outcome] }
    assert_equal [[nil, nil], [5, 0.0], [5, 2.0], [nil, nil], [5, 11.0]], seen.map { |payload| payload.values_at(:bytes, :age) }
    assert_equal [:document], seen.map { |payload| payload[:layer] }.uniq
    assert(seen.all? { |payload| payload[:milliseconds] >= 0 })
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end

  def test_a_wait_and_a_store_that_keeps_nothing_are_notified
    seen = Queue.new
    subscriber = ActiveSupport::Notifications.subscribe("cache.castellan") { |event| seen << event.payload[:outcome] }
    waiting = nil
    computing(freshness, 0) do
      waiting = Thread.new { @layer.fetch("k") { flunk } }
      Thread.pass until seen.size == 2 && waiting.stop? # both have missed
    end
    assert_equal "2", waiting.value
    Castellan::Cache::DocumentLayer.new(store: Castellan::Store::NullStore.new).fetch("k") { "bytes" }
    assert_equal %i[fill miss miss miss pass wait], Array.new(seen.size) { seen.pop }.sort
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end

  private

  def freshness(**times) = Castellan::Cache::Freshness.new(**times)

  def at(milliseconds)
    @at = milliseconds
    yield
  end

  def fill(key, bytes, cost_ms:)
    entry = Castellan::Cache::Entry.new(key, bytes, made_ms: Castellan::Clock.wall_ms, cost_ms: cost_ms)
    @store.write_multi({ key => entry.dump })
  end

  # Runs the block while a thread computes "2".
  def computing(allowed, milliseconds, key = "k")
    gate = Queue.new
    at(milliseconds) do
      thread = Thread.new { @layer.fetch(key, freshness: allowed, latest: ("latest" unless key == "k")) { gate.pop } }
      Thread.pass until thread.stop?
      yield
      gate << "2"
      thread.join
    end
  end
end
