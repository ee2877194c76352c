# frozen_string_literal: true

require "test_helper"

class CacheEntryTest < Minitest::Test
  Entry = Castellan::Cache::Entry

  def test_what_is_dumped_is_loaded
    entry = Entry.load("key", Entry.new("key", "bytes", made_ms: 1_795_416_604_783, cost_ms: 7).dump)
    assert_equal ["key", "bytes", 1_795_416_604_783, 7], [entry.key, entry.bytes, entry.made_ms, entry.cost_ms]
    assert_equal [1_000, 0], [entry.age_ms(entry.made_ms + 1_000), entry.age_ms(entry.made_ms - 1)]
  end

  def test_the_entry_of_another_key_and_anything_else_is_a_miss
    dumped = Entry.new("key", "bytes", made_ms: 1, cost_ms: 1 << 40).dump
    assert_predicate dumped, :frozen?
    refute_nil Entry.load("key", dumped)
    assert_nil Entry.load("other", dumped)
    assert_nil Entry.load("key", dumped.sub("bytes", "bites"))
    [nil, 1, "", "bytes", dumped[0..-2], "#{dumped}x", "CL\x01\x00#{dumped[4..]}".b, dumped[0, 10]].each do |other|
      assert_nil Entry.load("key", other), other.inspect
    end
  end
end
