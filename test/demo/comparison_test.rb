# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"

class ComparisonTest < Minitest::Test
  USER = { "id" => "7", "type" => "users", "attributes" => { "name" => "Ada", "roles" => [1, 2] } }.freeze

  def test_equal_responses_have_no_difference
    assert_nil difference({ "data" => [USER] }, { "data" => [USER] })
    assert_nil difference({ "a" => 1, "b" => 2 }, { "b" => 2, "a" => 1 })
    assert_nil difference({ "a" => 1 }, { "a" => 1.0 })
  end

  def test_the_first_difference_is_named_by_record_and_member
    other = { **USER, "attributes" => { "name" => "Ada", "roles" => [1] } }
    assert_equal "users 7, attributes.roles: 2 entries before, 1 entry after", difference({ "data" => [USER] }, { "data" => [other] })
  end

  def test_a_record_without_a_type_is_named_by_its_id
    assert_equal 'id 3, author.name: "A" before, "B" after',
                 difference([{ "id" => 3, "author" => { "name" => "A" } }], [{ "id" => 3, "author" => { "name" => "B" } }])
  end

  def test_the_innermost_record_is_the_one_that_is_named
    before = [{ "id" => 1, "comments" => [{ "id" => 5, "body" => "x" }] }]
    after = [{ "id" => 1, "comments" => [{ "id" => 5, "body" => "y" }] }]
    assert_equal 'id 5, body: "x" before, "y" after', difference(before, after)
  end

  def test_members_that_are_only_on_one_side
    assert_equal "a: 1 before, nothing after", difference({ "a" => 1 }, {})
    assert_equal "a: nothing before, 1 after", difference({}, { "a" => 1 })
  end

  def test_another_shape_at_the_root_is_shown
    assert_equal "the document: 1 entry before, 2 entries after (users 7 is missing)", difference([USER], [true, false])
    assert_equal 'the document: {"a":1} before, [true] after', difference({ "a" => 1 }, [true])
  end

  def test_long_values_are_cut
    assert_operator difference({ "a" => "x" * 500 }, { "a" => 1 }).size, :<, 120
  end

  def test_invalid_json_is_a_difference_and_not_an_error
    assert_match(/\Athe answer is not JSON: /, Castellan::Demo::Comparison.new("{}", '{"a":1},{"b":2}').difference)
    assert_match(/\Athe answer is not JSON: /, Castellan::Demo::Comparison.new("{}", "").difference)
  end

  def test_the_order_of_included_means_nothing
    one = { "id" => "1", "type" => "a" }
    two = { "id" => "1", "type" => "b" }
    assert_nil difference({ "included" => [one, two] }, { "included" => [two, one] })
    refute_nil difference({ "data" => [one, two] }, { "data" => [two, one] })
  end

  def test_patterns_remove_the_values_at_their_paths
    { "/a" => {}, "/*" => {}, "a/b" => { "a" => {} }, "/nowhere/at/all" => { "a" => { "b" => 1 } } }.each do |pattern, left|
      assert_nil difference({ "a" => { "b" => 1 } }, left, [pattern]), pattern
    end
    records = ->(value) { { "data" => [{ "x" => value, "y" => 1 }, { "x" => value }] } }
    assert_nil difference(records.call(1), records.call(2), ["/data/*/x"])
    assert_nil difference(records.call(1), records.call(2), ["/data/*/*"])
    refute_nil difference(records.call(1), records.call(2), ["/data/x"])
    assert_nil difference(records.call(1), { "data" => [] }, ["/data/*"])
  end

  def test_a_segment_of_a_pattern_is_a_member_and_never_an_index
    assert_nil difference({ "1" => { "a" => 1 } }, { "1" => { "a" => 2 } }, ["/1/a"])
    refute_nil difference([1, { "a" => 1 }], [1, { "a" => 2 }], ["/1/a"])
  end

  def test_of_lists_of_other_lengths_the_first_record_on_one_side_alone_is_named
    roles = [{ "type" => "roles", "id" => "1" }, { "type" => "roles", "id" => "2" }]
    assert_equal "roles: 2 entries before, 1 entry after (roles 1 is missing)",
                 difference({ "roles" => roles }, { "roles" => roles.last(1) })
    assert_equal "roles: 1 entry before, 2 entries after (roles 2 is new)",
                 difference({ "roles" => roles.first(1) }, { "roles" => roles })
  end

  private

  def difference(before, after, differs = [])
    Castellan::Demo::Comparison.new(JSON.generate(before), JSON.generate(after), differs: differs).difference
  end
end
