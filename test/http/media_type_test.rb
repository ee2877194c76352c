# frozen_string_literal: true

require "test_helper"

class HTTPMediaTypeTest < Minitest::Test
  MediaType = Castellan::HTTP::MediaType

  def test_reads_type_parameters_and_weight
    media_type = MediaType.parse('Application/JSON ; Charset="utf-8" ;q=0.25')
    assert_equal "application/json", media_type.type
    assert_equal({ "charset" => "utf-8" }, media_type.parameters)
    assert_in_delta 0.25, media_type.q
    assert_predicate media_type, :frozen?
  end

  def test_quoted_strings_hold_commas_semicolons_and_quoted_pairs
    one, other = MediaType.list('a/b; p="x, y; \"z\"", c/d')
    assert_equal 'x, y; "z"', one.parameters["p"]
    assert_equal({ "p" => 'x, y; "z"' }, one.parameters)
    assert_equal "c/d", other.type
  end

  def test_invalid_media_ranges_are_skipped
    assert_equal %w[a/b e/f g/h], MediaType.list('a/b, nonsense, c/d;q=2, e/f;p="unclosed\", i/j", g/h,,').map(&:type)
    assert_equal %w[a/b], MediaType.list('a/b, e/f;p="unclosed, g/h').map(&:type)
    [nil, "", "json", "a/b, c/d", "a/b; p", "\xFF/b"].each { |value| assert_nil MediaType.parse(value), value.inspect }
  end

  def test_a_hostile_field_is_parsed_in_linear_time
    assert_equal 64, MediaType.list("a/b," * 100_000).size
    assert_empty MediaType.list("\"\\" * 100_000)
    assert_empty MediaType.list("," * 100_000)
  end
end
