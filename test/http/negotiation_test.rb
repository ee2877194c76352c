# frozen_string_literal: true

require "test_helper"

class HTTPNegotiationTest < Minitest::Test
  JSON_API = "application/vnd.api+json"
  ATOMIC = "https://jsonapi.org/ext/atomic"

  def test_without_accept_the_first_type_is_chosen
    [nil, "", "*/*", "application/*", "text/html, */*;q=0.1"].each { |accept| assert_equal JSON_API, answer(accept), accept.inspect }
  end

  def test_a_json_api_range_with_other_parameters_is_ignored
    assert_nil answer("#{JSON_API}; charset=utf-8")
    assert_nil answer("#{JSON_API}; charset=utf-8, */*"), "the specification says MUST respond with 406"
    assert_equal JSON_API, answer("#{JSON_API}; charset=utf-8, #{JSON_API}")
  end

  def test_extensions_are_rejected_and_profiles_are_ignored
    assert_nil answer("#{JSON_API}; ext=\"#{ATOMIC}\"")
    assert_nil answer("#{JSON_API}; ext=\"#{ATOMIC}\", #{JSON_API}; v=1")
    assert_equal JSON_API, answer("#{JSON_API}; ext=\"#{ATOMIC}\", #{JSON_API};q=0.1")
    assert_equal JSON_API, answer("#{JSON_API}; profile=\"https://example.com/x\"")
  end

  def test_the_weight_decides_and_zero_rejects
    both = [JSON_API, "application/json"]
    assert_equal "application/json", answer("application/json, #{JSON_API};q=0.5", types: both)
    assert_equal JSON_API, answer("application/json, #{JSON_API}", types: both)
    assert_equal "application/json", answer("application/json", types: both)
    assert_equal "application/json", answer("*/*, #{JSON_API};q=0", types: both)
    assert_nil answer("#{JSON_API};q=0")
    assert_nil answer("text/html")
  end

  def test_the_most_specific_range_decides_about_a_type
    both = [JSON_API, "application/json"]
    assert_equal JSON_API, answer("*/*;q=0.5, application/json;q=0.1", types: both)
    assert_equal "application/json", answer("application/*;q=0.2, application/json;q=0.9", types: both)
  end

  def test_the_type_of_a_body
    assert_equal JSON_API, negotiation.request_type(JSON_API)
    assert negotiation.request_type("#{JSON_API}; profile=\"https://example.com/x\"")
    [nil, "", "application/json", "#{JSON_API}; charset=utf-8", "#{JSON_API}; ext=\"https://example.com/x\""].each do |content_type|
      assert_nil negotiation.request_type(content_type), content_type.inspect
    end
  end

  def test_the_errors_name_the_fix
    error = assert_raises(Castellan::BadRequest) { negotiation.response_type!("text/html") }
    assert_equal 406, error.status
    assert_includes error.message, "Write application/vnd.api+json"
    error = assert_raises(Castellan::BadRequest) { negotiation.request_type!("#{JSON_API}; charset=utf-8") }
    assert_equal 415, error.status
    assert_includes error.message, "no parameter but profile"
  end

  def test_threads_share_one_object
    shared = negotiation
    assert_predicate shared, :frozen?
    answers = Array.new(8) { |i| Thread.new { Array.new(200) { shared.response_type(i.even? ? JSON_API : "text/html") } } }.map(&:value)
    answers.each_with_index { |list, i| assert_equal [i.even? ? JSON_API : nil], list.uniq }
  end

  private

  def negotiation(types: [JSON_API]) = Castellan::HTTP::Negotiation.new(types: types)
  def answer(accept, types: [JSON_API]) = negotiation(types: types).response_type(accept)
end
