# frozen_string_literal: true

require "test_helper"
require_relative "active_record_world"

# Loaded records equal their `as_json` in every state; unchanged ones are written from the driver's values.
module LoadedColumnsContract
  COLUMNS = { name: :string, note: :text, count: :integer, flag: :boolean, ratio: :float, price: :decimal, born_on: :date,
              seen_at: :datetime, data: :json }.freeze
  CHANGES = {
    "nothing" => ->(_) {},
    "attributes are read" => ->(record) { record.attributes },
    "one is read" => ->(record) { [record.name, record.seen_at, record.data] },
    "the type's input is read" => ->(record) { [record.seen_at_before_type_cast, record.name_before_type_cast] },
    "a String is changed in place" => ->(record) { record.name << "!" },
    "a JSON Hash is changed in place" => ->(record) { record.data["b"] = 2 },
    "attributes are assigned" => ->(record) { record.assign_attributes(name: "new", count: 7, born_on: "2020-02-02", seen_at: nil) },
    "an attribute is saved" => ->(record) { record.update!(note: "saved") },
    "it is reloaded" => ->(record) { record.tap { record.name = "lost" }.reload }
  }.freeze

  def setup
    @model = Class.new(base) { self.table_name = "loaded_columns" }
    connection = @model.connection
    connection.create_table(:loaded_columns, force: true) { |table| COLUMNS.each { |name, type| table.public_send(type, name) } }
    3.times do |index|
      @model.create!(name: "n#{index}", note: ("<b>" if index.odd?), count: index, flag: index.odd?, ratio: index / 4.0, price: "1.50",
                     born_on: Date.new(2024, 1, 31), seen_at: Time.utc(2024, 1, 31, 10, 0, 0.5r), data: { "a" => [index] })
    end
  end

  def test_records_in_every_state_equal_their_json
    CHANGES.each do |title, change|
      records = @model.order(:id).to_a
      change.call(records[1])
      assert_equal JSON.parse(records.to_json), written(records), title
    end
  end

  def test_unchanged_values_are_not_cast
    records = @model.order(:id).to_a
    written(records, COLUMNS.keys - %i[data price])
    assert_empty records.flat_map(&:accessed_fields) & %w[name note count flag seen_at]
  end

  def test_a_column_that_was_not_selected_raises
    error = assert_raises(ActiveModel::MissingAttributeError) { written(@model.select(:id, :name).to_a, %i[name count]) }
    assert_includes error.message, "count"
  end

  def test_records_of_two_statements_are_written_together
    records = [*@model.select(:name, :id).where(id: 1), *@model.where(id: 2)]
    assert_equal [{ "id" => 1, "name" => "n0" }, { "id" => 2, "name" => "n1" }], written(records, %i[name])
  end

  private

  def written(records, names = COLUMNS.keys)
    model = @model
    resource = Class.new(Castellan::Resource) do
      model model
      type "loaded"
      attributes(*names)
    end
    JSON.parse(resource.render(records, format: :nested))
  end
end

class LoadedColumnsOnSqliteTest < Minitest::Test
  include LoadedColumnsContract

  def base = ActiveRecordWorld.sqlite::Base
end

class LoadedColumnsOnPostgresTest < Minitest::Test
  include LoadedColumnsContract

  def base
    needs :postgres
    ActiveRecordWorld.postgres::Base
  end
end
