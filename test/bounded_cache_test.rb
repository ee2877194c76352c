# frozen_string_literal: true

require "test_helper"
require "castellan/bounded_cache"

class BoundedCacheTest < Minitest::Test
  def test_a_key_that_is_read_stays_while_others_leave
    cache = Castellan::BoundedCache.new(limit: 10)
    cache.fetch("popular") { +"first" }
    1_000.times do |number|
      cache.fetch(number) { number }
      assert_equal "first", cache.fetch("popular") { flunk }
      assert_operator cache.size, :<=, 10
    end
    assert_nil cache[1]
  end

  def test_nil_is_not_kept
    cache = Castellan::BoundedCache.new
    assert_nil cache.fetch(1) { [].first }
    assert_equal [[2], [2], 1], [cache.fetch(1) { [2] }, cache.fetch(1) { [3] }, cache.size]
  end

  def test_threads_get_one_value
    cache = Castellan::BoundedCache.new
    100.times do |key|
      values = Array.new(4) { Thread.new { cache.fetch(key) { Object.new } } }.map(&:value)
      values << cache.fetch(key) { flunk }
      assert_equal 1, values.uniq.size
    end
  end

  def test_a_block_may_ask_the_cache_itself
    cache = Castellan::BoundedCache.new
    assert_equal(2, cache.fetch(:outer) { cache.fetch(:inner) { Integer("1") } + 1 })
  end
end
