# frozen_string_literal: true

require "test_helper"

class HTTPValidatorsTest < Minitest::Test
  Validators = Castellan::HTTP::Validators

  def test_a_short_plain_token_is_the_tag
    assert_equal '"users-v17"', Validators.etag("users-v17")
    assert_equal 'W/"users-v17"', Validators.etag("users-v17", weak: true)
    assert_equal '"users-v17-gzip"', Validators.etag("users-v17", coding: "gzip")
  end

  def test_any_other_token_is_digested_to_characters_that_a_tag_may_have
    ["two words", "quote\"", "new\r\nline", "ü", "\x00\xFF".b, "x" * 65].each do |token|
      assert_match(/\A"[A-Za-z0-9_-]{22}"\z/, Validators.etag(token))
      assert_equal Validators.etag(token), Validators.etag(token.dup)
    end
    refute_equal Validators.etag("a b"), Validators.etag("a c")
  end

  def test_no_token_is_a_mistake
    assert_raises(ArgumentError) { Validators.etag(nil) }
    assert_raises(ArgumentError) { Validators.etag("") }
  end

  # RFC 9110 §8.8.3.2, the table of the example.
  def test_comparison_as_in_the_table_of_rfc_9110
    [['W/"1"', 'W/"1"', false, true], ['W/"1"', 'W/"2"', false, false], ['W/"1"', '"1"', false, true], ['"1"', '"1"', true, true]]
      .each do |one, other, strongly, weakly|
        assert_equal strongly, Validators.same_strongly?(one, other)
        assert_equal weakly, Validators.same_weakly?(one, other)
      end
  end
end
