# frozen_string_literal: true

require "test_helper"
require_relative "slow_store"

# FailSafe skips a store that fails slowly for a limited time.
class FailSafeTest < Minitest::Test
  SECOND = SlowStore::SECOND

  def setup
    @store = SlowStore.new(takes: SECOND / 4)
    @safe = Castellan::Store::FailSafe.new(@store, log: ->(_line) {})
  end

  def test_a_store_is_skipped_for_five_seconds_at_most
    clocked do
      @store.takes = 30 * SECOND
      fail_twice
      failed = @store.now
      @store.broken = false
      assert_equal [{}, {}], [failed, failed + (5 * SECOND) - 1].map { |now| read_at(now) }
      assert_equal({ "a" => "A" }, read_at(failed + (5 * SECOND)))
    end
  end

  def test_a_recovered_store_is_not_skipped_at_its_next_failure
    clocked do
      fail_twice
      failed = @store.now
      @store.broken = false
      read_at(failed + (3 * SECOND))
      @store.broken = true
      @safe.read_multi(%w[a])
      @store.broken = false
      assert_equal({ "a" => "A" }, read_at(failed))
    end
  end

  # Other processes wait for the lease.
  def test_a_lease_is_released_while_the_store_is_skipped
    clocked do
      assert @safe.acquire("lease", "me", ttl: 10)
      fail_twice
      @store.broken = false
      assert @safe.compare_and_delete("lease", "me")
      assert_empty @store.read_multi(%w[lease])
    end
  end

  private

  def clocked(&block)
    @safe.write_multi({ "a" => "A" })
    @store.clocked(&block)
  end

  def fail_twice
    @store.broken = true
    2.times { assert_empty @safe.read_multi(%w[a]) }
  end

  def read_at(now)
    @store.now = now
    @safe.read_multi(%w[a])
  end
end
