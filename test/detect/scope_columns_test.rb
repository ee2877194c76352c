# frozen_string_literal: true

require "test_helper"
require "sequel"
require "castellan/detect"

class ScopeColumnsTest < Minitest::Test
  ScopeColumns = Castellan::Detect::ScopeColumns

  def setup
    @database = Sequel.sqlite(test: false, keep_reference: false)
    @database.create_table(:parts) { primary_key :id }
  end

  def teardown = @database.disconnect

  def test_conditions_that_only_a_request_has_may_be_there
    refute conditions? { |parts| parts.order(:id) }
    assert conditions? { |parts| parts.where(id: 1) }
    assert(conditions? { |_parts| raise "nobody is logged in" })
  end

  private

  def conditions?(&block)
    model = Class.new(Sequel::Model(@database[:parts]))
    model.one_to_many(:parts, class: model, key: :id, &block)
    ScopeColumns.any?(Castellan::Detect::SequelModels.link(model, :parts))
  end
end
