# frozen_string_literal: true

require "test_helper"

class NullStoreTest < Minitest::Test
  def test_keeps_nothing
    store = Castellan::Store::NullStore.new
    assert_empty store.write_multi({ "a" => "1" }, ttl: 5)
    assert_empty store.read_multi(%w[a])
    assert_equal [1, 2], [store.increment("n"), store.increment("n", 2, ttl: 5)]
    refute store.compare_and_delete("a", "1")
    refute store.supports?(:lease)
    assert_nil store.delete_multi(%w[a])
  end

  def test_the_linter_finds_nothing
    assert_empty Castellan::Store::Linter.new(Castellan::Store::NullStore.new).defects
  end
end
