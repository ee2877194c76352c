# frozen_string_literal: true

require "test_helper"
require "castellan/serializer"
require "serializer/case_answers"
require "serializer/shop"

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

  # Written out of the way of an after_initialize in the base class.
  def test_a_serializer_of_stored_columns_makes_no_model_and_its_explanation_says_how_to_get_there
    variant = Class.new { include Castellan::Serializer }
    variant.set_type :variant
    variant.attributes :sku, :weight
    document = variant.new(SerializerCases::Variant.order(:id))
    assert_match(/sku: the callback after_initialize :fill_preferences \(.*shop.rb:\d+\) of .*Variant may set sku; write as_stored: true/,
                 document.explain)
    before = document.to_json
    variant.attributes :sku, :weight, as_stored: true
    after = nil
    count = 0
    counted = ->(*, event) { count += event[:record_count] }
    ActiveSupport::Notifications.subscribed(counted, "instantiation.active_record") { after = variant.new(SerializerCases::Variant.order(:id)).to_json }
    assert_equal [before, 0], [after, count]
  end
end
