# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/way"
require_relative "../../benchmark/support/same_documents"

class SameDocumentsTest < Minitest::Test
  include Benchmarks

  def test_spaces_and_the_order_of_members_and_of_included_say_nothing
    one = '{"data":[1],"included":[{"type":"roles","id":"1"},{"type":"groups","id":"1"}]}'
    other = '{ "included":[{"id":"1","type":"groups"},{"type":"roles","id":"1"}], "data":[1] }'
    assert_nil SameDocuments.difference(one, other)
  end

  def test_the_first_difference_is_named_with_its_place_and_both_values
    assert_equal 'data/0/title: "a" and "b"', SameDocuments.difference('{"data":[{"title":"a"}]}', '{"data":[{"title":"b"}]}')
  end

  def test_the_order_of_a_list_counts
    assert_equal "0: 1 and 2", SameDocuments.difference("[1,2]", "[2,1]")
  end

  def test_a_member_that_only_one_has_and_lists_of_different_lengths_differ
    assert_equal "a: only one of them has it", SameDocuments.difference('{"a":null}', "{}")
    assert_equal "a: 1 and 2 items", SameDocuments.difference('{"a":[1]}', '{"a":[1,2]}')
  end

  def test_null_and_a_missing_included_record_differ
    assert_equal "included/roles/1: only one of them has it",
                 SameDocuments.difference('{"included":[{"type":"roles","id":"1"}]}', '{"included":[]}')
  end

  def test_different_documents_end_the_run
    ways = [Way.new("ours", :nested) { "[1]" }, Way.new("theirs", :nested) { "[2]" }]
    error = nil
    _, said = capture_io { error = assert_raises(SystemExit) { SameDocuments.check("a work", ways) } }
    refute error.success?
    assert_equal "a work: ours and theirs do not answer the same document. 0: 1 and 2\n", said
  end

  def test_documents_of_two_formats_are_not_compared_and_rows_are_no_document
    ways = [Way.new("json:api", :json_api) { '{"data":[]}' }, Way.new("nested", :nested) { "[]" }, Way.new("rows", nil) { flunk }]
    assert_equal({ "json:api" => 11, "nested" => 2 }, SameDocuments.check("a work", ways))
  end
end
