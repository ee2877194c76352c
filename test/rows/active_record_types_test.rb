# frozen_string_literal: true

require "test_helper"
require_relative "active_record_world"

# Rows write each type of attribute as the record's as_json does.
module ActiveRecordTypesContract
  COLUMNS = {
    small: :integer, big: :bigint, name: :string, body: :text, flag: :boolean, ratio: :float,
    price: [:decimal, { precision: 12, scale: 2 }],
    huge: [:decimal, { precision: 30, scale: 10 }], whole: [:decimal, { precision: 12, scale: 0 }], born_on: :date, seen_at: :datetime,
    second_at: [:datetime, { precision: 0 }], tick_at: [:datetime, { precision: 6 }], daily_at: :time, raw: :binary, settings: :json,
    state: :integer, tags: :text, options: :text, secret: :text, shouted: :string, number_text: :integer, tidy: :string,
    cipher: :string
  }.freeze
  ON_POSTGRES = { document: :jsonb, token: :uuid, zoned_at: :timestamptz, address: :inet, span: :interval }.freeze
  LISTS = { words: :string, numbers: :integer, days: :date, moments: :timestamptz }.freeze

  def setup
    model.delete_all
  end

  def test_each_value_equals_that_of_the_record
    seed
    assert_same_documents
  end

  def test_times_are_written_in_the_zone_of_the_request
    seed
    %w[Berlin Kathmandu UTC].each { |zone| Time.use_zone(zone) { assert_same_documents } }
  end

  def test_null_is_null_for_every_type
    model.create!
    assert_same_documents
  end

  def test_loaded_records_are_written_like_rows
    seed
    names.each { |name| assert_equal values(name), written(name, model.order(:id).to_a), "#{name} of records" }
    Time.use_zone("Kathmandu") { %i[seen_at tick_at].each { |name| assert_equal values(name), written(name, model.order(:id).to_a) } }
  end

  def test_one_overridden_reader_loads_models_for_the_whole_type
    seed
    everything = JSON.parse(ActiveSupport::JSON.encode(model.order(:id).map { |record| record.as_json(only: names + %i[shouted]) }))
    assert_equal(everything, document(model, names + %i[shouted]).map { |object| object["attributes"] })
  end

  def test_an_overridden_reader_is_called
    model.create!(shouted: "quiet")
    assert_equal "QUIET", document(model, %i[shouted]).first["attributes"]["shouted"]
  end

  def test_an_after_initialize_callback_loads_models_for_the_type
    model.create!(name: "changed when found")
    found = Class.new(model) do
      after_find { self.name = "by the callback" }
      def self.model_name = ActiveModel::Name.new(self, nil, "Found")
    end
    found.table_name = model.table_name
    assert_equal "by the callback", document(found, %i[name]).first["attributes"]["name"]
  end

  def test_an_alias_is_its_column
    model.create!(name: "x")
    assert_equal "x", document(model, %i[label]).first["attributes"]["label"]
  end

  def test_an_overridden_reader_of_an_alias_is_called
    model.create!(name: "x")
    loud = Class.new(model) do
      define_method(:label) { super().upcase }
      def self.model_name = ActiveModel::Name.new(self, nil, "Loud")
    end
    [loud, loud.order(:id).to_a].each { |from| assert_equal ["X"], written(:label, from, loud) }
    assert_equal "x", document(loud, %i[name]).first["attributes"]["name"]
  end

  private

  def seed
    model.create!(small: 7, big: 2**62, name: "a\"b\u2028</script>\u{1F600}", body: "line\nline\ttab\u0001", flag: true,
                  ratio: 0.1 + 0.2, price: "12.50", huge: "123456789012345678.0123456789", whole: 12, born_on: Date.new(2024, 2, 29),
                  seen_at: Time.utc(2024, 1, 31, 10, 20, 30.1239r),
                  second_at: Time.utc(2024, 7, 1, 1, 2, 3), tick_at: Time.utc(1969, 12, 31, 23, 59, 59.999999r), daily_at: "13:14:15",
                  raw: "bytes",
                  settings: { "a" => [1, nil, "x"], "b" => 1.5 }, state: :done, tags: %w[x y], options: { color: "red" },
                  secret: "hidden", shouted: "quiet", cipher: "top secret",
                  number_text: 5, tidy: "  Tidy ", **(postgres? ? postgres_values : {}))
    model.create!(small: -1, big: -(2**62), name: "", flag: false, ratio: 1e20, price: "-0.01", huge: "0", whole: "99999999999",
                  born_on: Date.new(1, 1, 1),
                  seen_at: Time.utc(2024, 6, 30, 23, 59, 59), settings: [], state: :fresh, tags: [], options: {})
    model.create!(ratio: 100.0, price: "1000000", huge: "1e15", settings: "text")
  end

  def postgres_values
    { document: { "k" => { "n" => [1, 2.25, "\u2028"] } }, token: "c0de0000-0000-4000-8000-000000000001",
      zoned_at: Time.utc(2024, 8, 1, 12, 0, 0.5r),
      address: "10.0.0.1", span: "P1DT2H", words: ["a,b", "c\"d", nil], numbers: [1, 2, nil], days: [Date.new(2024, 1, 1)],
      moments: [Time.utc(2024, 8, 1, 12), nil] }
  end

  def assert_same_documents
    expected = model.order(:id).map do |record|
      { "id" => record.id.to_s, "attributes" => JSON.parse(ActiveSupport::JSON.encode(record.as_json(only: names))) }
    end
    assert_equal expected, from_rows { document }.map { |object| object.slice("id", "attributes") }
  end

  def values(name)
    model.order(:id).map { |record| JSON.parse(ActiveSupport::JSON.encode(record.as_json(only: [name])))[name.name] }
  end

  def written(name, from, model = self.model)
    resource = Class.new(Castellan::Resource) { type "things" }
    resource.model(model)
    resource.attribute(name)
    JSON.parse(resource.render(from))["data"].map { |object| object["attributes"][name.name] }
  end

  # Fails if a model is instantiated.
  def from_rows(&block)
    made = 0
    count = ->(*, event) { made += event[:record_count] }
    ActiveSupport::Notifications.subscribed(count, "instantiation.active_record", &block).tap { assert_equal 0, made }
  end

  def document(from = model, attributes = names)
    resource = Class.new(Castellan::Resource) do
      model from
      type "things"
      attributes(*attributes)
    end
    JSON.parse(resource.render(from.order(:id)))["data"]
  end

  def names
    model.column_names.map(&:to_sym) - %i[id shouted]
  end

  def postgres?
    model.connection.adapter_name == "PostgreSQL"
  end
end

# Declares the model in one database.
module ActiveRecordTypesModel
  # Stores points as text; Castellan has no code for this type.
  class PointType < ActiveRecord::Type::Value
    def deserialize(value) = value && value.to_s.split(";").map(&:to_i)
    def serialize(value) = value&.join(";")
  end

  module_function

  def build(base, columns, lists)
    base.connection.create_table(:things) do |table|
      columns.each { |name, (type, options)| table.column(name, type, **(options || {})) }
      lists.each { |name, type| table.column(name, type, array: true) }
      table.string :points
    end
    Class.new(base) do
      self.table_name = "things"
      def self.name = "Thing"
      enum :state, { fresh: 0, done: 1 }
      serialize :tags, coder: JSON
      store :options, accessors: %i[color], coder: JSON
      attribute :number_text, :string
      attribute :points, PointType.new
      attribute :secret, :string
      encrypts :cipher, key_provider: ActiveRecord::Encryption::KeyProvider.new(ActiveRecord::Encryption::Key.new("k" * 32))
      normalizes :tidy, with: ->(value) { value.strip }
      alias_attribute :label, :name
      define_method(:shouted) { super()&.upcase }
      self.skip_time_zone_conversion_for_attributes = [:tick_at]
      self.time_zone_aware_attributes = true
    end
  end
end

class ActiveRecordTypesOnSqliteTest < Minitest::Test
  include ActiveRecordTypesContract

  def self.model = @model ||= ActiveRecordTypesModel.build(ActiveRecordWorld.sqlite::Base, COLUMNS, {})
  def model = self.class.model
end

class ActiveRecordTypesOnPostgresTest < Minitest::Test
  include ActiveRecordTypesContract

  def setup
    needs :postgres
    super
  end

  def self.model = @model ||= ActiveRecordTypesModel.build(ActiveRecordWorld.postgres::Base, COLUMNS.merge(ON_POSTGRES), LISTS)
  def model = self.class.model
end
