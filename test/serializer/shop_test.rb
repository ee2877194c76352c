# frozen_string_literal: true

require "test_helper"
require "serializer/case_answers"

# A relation with `includes` of its own: see cases/shop.rb for the documents.
class ShopTest < Minitest::Test
  def test_a_relation_that_loads_associations_takes_no_more_statements_than_with_jsonapi_serializer
    original, ours = %w[original castellan].map do |library|
      CaseAnswers.of(library, "queries/shop.rb").transform_values { |answer| answer.last.to_i }
    end
    assert_operator original.size, :>=, 4
    assert_operator original.values.min, :>, 0
    assert_empty original.keys.select { |name| ours.fetch(name) > original.fetch(name) }, [original, ours].inspect
  end
end
