# frozen_string_literal: true

require "test_helper"

class CacheKeyTest < Minitest::Test
  def test_equal_parts_have_equal_keys
    parts = [%w[a b], ["ab"], ["a", nil, "b"], ["a", "", "b"], %w[b a], [["a"], "b"], [%w[a b]], [1], ["1"], [12], [1, 2],
             [true], [false], [nil], [], [[]], ["s1:a"], ["a", "s1:b"], [-1], ["a\0b"]]
    keys = parts.map { |list| key(list) }
    assert_equal keys.size, keys.uniq.size
    assert_equal keys, parts.map { |list| key(list) }
    assert_equal key([:users]), key(["users"])
  end

  def test_a_key_is_short_ascii_with_the_format_as_prefix
    assert_match(/\Acastellan:1:[A-Za-z0-9_-]{32}\z/, key(["x" * 100_000]))
    assert_predicate key(["a"]), :frozen?
  end

  def test_a_key_depends_on_bytes_and_not_on_the_encoding
    assert_equal key(["ü"]), key(["ü".b])
    assert_equal key(["\xFF"]), key(["\xFF".b])
  end

  def test_a_part_that_is_not_a_string_raises
    error = assert_raises(ArgumentError) { key([1.5]) }
    assert_includes error.message, "got Float"
    assert_raises(ArgumentError) { key([Object.new]) }
  end

  def test_a_key_is_the_same_with_and_without_openssl
    script = 'require "castellan"; abort("loaded") if defined?(OpenSSL); k = -> { Castellan::Cache::Key.for(["x" * 9999]) }; ' \
             'one = k.call; require "openssl"; puts one == k.call'
    assert_equal "true\n", run_ruby("-w", "-e", script)
  end

  private

  def key(parts) = Castellan::Cache::Key.for(parts)
end
