# frozen_string_literal: true

require "test_helper"

class HTTPPreconditionsTest < Minitest::Test
  def test_without_conditions_the_request_proceeds
    assert_equal :proceed, evaluate({})
  end

  def test_if_none_match_of_the_current_tag_is_not_modified_for_get_and_head_and_fails_for_others
    assert_equal :not_modified, evaluate({ "if-none-match" => '"a"' })
    assert_equal :not_modified, evaluate({ "if-none-match" => '"a"' }, method: "HEAD")
    assert_equal :precondition_failed, evaluate({ "if-none-match" => '"a"' }, method: "PUT")
    assert_equal :proceed, evaluate({ "if-none-match" => '"b"' })
  end

  def test_if_none_match_compares_weakly_and_reads_lists
    ['W/"a"', '"x", "a"', '"x","y" , W/"a"', ', "x,y",, "a" ,', ' "a"'].each do |list|
      assert_equal :not_modified, evaluate({ "if-none-match" => list }), list
    end
    assert_equal :not_modified, evaluate({ "if-none-match" => '"a"' }, etag: 'W/"a"')
    assert_equal :not_modified, evaluate({ "if-none-match" => '"x,y"' }, etag: '"x,y"')
  end

  def test_a_malformed_list_matches_nothing
    ["a", '"a', 'a"', '"x" "a"', '"x", a, "a"', "", "\xFF", "w/\"a\""].each do |list|
      assert_equal :proceed, evaluate({ "if-none-match" => list }), list.inspect
      assert_equal :precondition_failed, evaluate({ "if-match" => list }, method: "PUT"), list.inspect
    end
  end

  def test_a_star_matches_any_representation
    assert_equal :not_modified, evaluate({ "if-none-match" => "*" })
    assert_equal :precondition_failed, evaluate({ "if-none-match" => "*" }, method: "PUT")
    assert_equal :proceed, evaluate({ "if-none-match" => "*" }, method: "PUT", exists: false, etag: nil)
    assert_equal :proceed, evaluate({ "if-match" => "*" }, method: "PUT")
    assert_equal :precondition_failed, evaluate({ "if-match" => "*" }, method: "PUT", exists: false, etag: nil)
  end

  def test_if_match_compares_strongly
    assert_equal :proceed, evaluate({ "if-match" => '"x", "a"' }, method: "PATCH")
    assert_equal :precondition_failed, evaluate({ "if-match" => '"b"' }, method: "PATCH")
    assert_equal :precondition_failed, evaluate({ "if-match" => 'W/"a"' }, method: "PATCH", etag: 'W/"a"')
    assert_equal :precondition_failed, evaluate({ "if-match" => 'W/"a"' }, method: "PATCH")
  end

  def test_dates_are_ignored
    assert_equal :proceed, evaluate({ "if-modified-since" => "Sun, 06 Nov 1994 08:49:37 GMT" })
    assert_equal :proceed, evaluate({ "if-unmodified-since" => "Sun, 06 Nov 1994 08:49:37 GMT" }, method: "DELETE")
  end

  def test_if_match_comes_before_if_none_match
    assert_equal :precondition_failed, evaluate({ "if-match" => '"b"', "if-none-match" => '"a"' })
    assert_equal :not_modified, evaluate({ "if-match" => '"a"', "if-none-match" => '"a"' })
  end

  def test_methods_without_a_representation_ignore_preconditions
    assert_equal :proceed, evaluate({ "if-match" => '"b"' }, method: "OPTIONS")
  end

  def test_a_rack_environment_may_replace_headers
    assert_equal :not_modified, evaluate({ "HTTP_IF_NONE_MATCH" => '"a"' })
    assert_equal :precondition_failed, evaluate({ "HTTP_IF_MATCH" => '"b"' }, method: "PUT")
  end

  def test_a_long_hostile_list_is_parsed_in_linear_time
    list = ('"' * 200_000)
    assert_equal :proceed, evaluate({ "if-none-match" => list })
    assert_equal :proceed, evaluate({ "if-none-match" => "\"x\"#{',' * 200_000}x" })
  end

  private

  def evaluate(headers, method: "GET", etag: '"a"', exists: true)
    Castellan::HTTP::Preconditions.evaluate(method: method, headers: headers, etag: etag, exists: exists)
  end
end
