# frozen_string_literal: true

require "test_helper"
require "serializer/case_answers"

# Documents the bugs of jsonapi-serializer 2.2 and what Castellan::Serializer does. See
# test/serializer/defects/.
class DefectsTest < Minitest::Test
  # case => [jsonapi-serializer's answer, Castellan's answer]
  EXPECTED = {
    "a cache with params" => [%w[one one], %w[one two]],
    "a cache with params of a record" => [["Ada Lovelace", "Ada Lovelace"], ["Ada Lovelace", "Grace Hopper"]],
    "a cache with params that cannot be a key" => [%w[one one], %w[one two]],
    "a cache of two classes" => [[[:title], [:title]], [[:title], [:pages]]],
    "a cache of a class and its superclass" => [[[:title], [:title]], [[:title], %i[title pages]]],
    "a cache of sets of fields whose names join to one" => [[{ a_b: 1, c: 2 }, { a_b: 1, c: 2 }], [{ a_b: 1, c: 2 }, { a: 3, b_c: 4 }]],
    "a cache keeps what it can" => [[1, 1], [1, 1]],
    "linkage of a lazy relationship that is included below another" => [{ "1" => [], "2" => [], "3" => [] },
                                                                        { "1" => [:publisher], "2" => [:publisher], "3" => [:publisher] }],
    "linkage of a lazy relationship that is included below another, of a relation" =>
      [{ "1" => [], "2" => [], "3" => [] }, { "1" => [:publisher], "2" => [:publisher], "3" => [:publisher] }],
    "linkage of a lazy relationship of which only the next step is named" => [{ "1" => [] }, { "1" => [:author] }],
    "linkage of a record that two paths lead to" => [{ "1" => false, "2" => false, "3" => false },
                                                     { "1" => true, "2" => false, "3" => false }],
    "a record that many lead to is walked once" => [21, 2],
    "a question that is asked twice" => [[1, 0], [1, 1]],
    "a namespace that is a block" => ["#<Pr", "v1.0"]
  }.freeze

  EXPECTED.each do |name, (was, is)|
    define_method("test_#{name.tr(" ,", "__")}") do
      assert_equal [["value", was.inspect], ["value", is.inspect]], [original.fetch(name), ours.fetch(name)]
    end
  end

  def test_a_related_struct_is_one_record
    assert_equal "error", original.fetch("a struct that is related").first
    assert_equal ["value", [{ id: "3", type: :crew, attributes: { name: "Sound" } }].inspect], ours.fetch("a struct that is related")
  end

  def test_every_case_has_an_expected_answer
    assert_equal ours.keys, original.keys
    assert_empty original.keys - EXPECTED.keys - ["a struct that is related"]
  end

  private

  def original = CaseAnswers.of("original", "defects/*.rb")
  def ours = CaseAnswers.of("castellan", "defects/*.rb")
end
