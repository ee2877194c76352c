# frozen_string_literal: true

require "test_helper"
require "castellan/serializer"
require "serializer/case_answers"
require "serializer/shop"

# Relations with their own `includes`; see cases/shop.rb for the documents.
class ShopTest < Minitest::Test
  def test_a_relation_with_includes_takes_no_more_queries_than_jsonapi_serializer
    original, ours = %w[original castellan].map do |library|
      CaseAnswers.of(library, "queries/shop.rb").transform_values { |answer| answer.last.to_i }
    end
    assert_operator original.size, :>=, 4
    assert_operator original.values.min, :>, 0
    assert_empty original.keys.select { |name| ours.fetch(name) > original.fetch(name) }, [original, ours].inspect
  end

  # `as_stored: true` skips the after_initialize of the base class.
  def test_stored_columns_instantiate_no_model_and_explain_names_the_fix
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
