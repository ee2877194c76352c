# frozen_string_literal: true

require "test_helper"
require_relative "broken_store"

class CacheRecordLayerTest < Minitest::Test
  def setup
    super
    @store = BrokenStore.new
    @lines = []
    @layer = Castellan::Cache::RecordLayer.new(store: @store, log: ->(line) { @lines << line })
  end

  def test_only_what_is_missing_is_made_in_one_call_one_read_and_one_write
    assert_equal %w[A B], fetch(%w[a b]) { |missing| assert_equal(%w[a b], missing) && upcase(missing) }
    assert_equal %w[C A D B], fetch(%w[c a d b]) { |missing| assert_equal(%w[c d], missing) && upcase(missing) }
    assert_equal %w[B C], fetch(%w[b c]) { flunk "nothing is missing" }
    assert_equal [3, 2], [@store.reads, @store.writes]
  end

  def test_a_key_may_come_twice
    assert_equal %w[A B A], fetch(%w[a b a]) { |missing| assert_equal(%w[a b], missing) && upcase(missing) }
    assert_equal %w[A A], fetch(%w[a a]) { flunk "nothing is missing" }
  end

  def test_a_record_that_is_gone_is_nil_and_asked_for_again
    assert_equal ["A", nil], fetch(%w[a gone]) { upcase(%w[a]) }
    assert_equal ["A", nil], fetch(%w[a gone]) { |missing| assert_equal(%w[gone], missing) && {} }
  end

  def test_no_keys_no_records
    assert_equal [], fetch([]) { flunk "nothing is missing" }
  end

  def test_a_broken_store_is_a_miss_and_said_once
    @store.broken = true
    2.times { assert_equal %w[A], fetch(%w[a]) { |missing| upcase(missing) } }
    assert_equal 1, @lines.size
  end

  def test_switched_off_it_is_passed_by
    with_env("CASTELLAN" => "off") do
      assert_equal %w[A B A], fetch(%w[a b a]) { |missing| assert_equal(%w[a b], missing) && upcase(missing) }
    end
    assert_equal [0, 0], [@store.reads, @store.writes]
  end

  private

  def fetch(keys, &block) = @layer.fetch_many(keys, &block)
  def upcase(keys) = keys.to_h { |key| [key, key.upcase] }
end
