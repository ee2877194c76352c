# frozen_string_literal: true

require "test_helper"
require "sequel"
require_relative "../rows/active_record_world"

# Values without a plain coder are those of the record's as_json, with rows and with both encoders.
class UnusualValuesTest < Minitest::Test
  COLUMNS = { count: :integer, flag: :boolean, ratio: :float, price: :decimal, born_on: :date, seen_at: :datetime }.freeze
  ON_SQLITE = { count: ["'abc'", "'12abc'", "1.5", "''"], flag: ["'off'", "2", "'x'", "''"], ratio: ["9e999", "-9e999", "'abc'", "'1.5x'"],
                born_on: ["'abc'", "''", "'2024-1-5'", "'2024-01-01 10:00'", "'-0044-03-15'", "20240101"],
                seen_at: ["'abc'", "''", "'2024-01-31 10:20'", "'2024-02-30 10:00:00'", "'2024-01-31 24:00:00'"] }.freeze
  ON_POSTGRES = { ratio: ["'NaN'", "'Infinity'", "'-Infinity'"], price: ["'NaN'", "'-Infinity'"],
                  born_on: ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'12024-01-01'"],
                  seen_at: ["'infinity'", "'-infinity'", "'0044-03-15 10:00 BC'", "'12024-01-01 10:00:00.5'"],
                  zoned_at: ["'infinity'", "'-infinity'", "'0044-03-15 10:00 BC'", "'12024-01-01'", "'2024-06-30 10:00:00.5+02'"] }.freeze

  def test_unusual_values_on_sqlite
    assert_values(model_of(ActiveRecordWorld.sqlite::Base, COLUMNS), ON_SQLITE)
  end

  def test_unusual_values_on_postgres
    needs :postgres
    assert_values(model_of(ActiveRecordWorld.postgres::Base, { **COLUMNS, zoned_at: :timestamptz }), ON_POSTGRES)
  end

  def test_by_id_in_a_stream_and_through_an_association
    model = model_of(ActiveRecordWorld.sqlite::Base, COLUMNS)
    insert(model, :ratio, "9e999")
    model.belongs_to(:other, foreign_key: :count, optional: true, anonymous_class: model)
    record = model.create!(count: model.first.id)
    resource = resource(model, :ratio)
    resource.attribute(:others, from: "other.ratio")
    expected = [{ "ratio" => nil, "others" => nil }] * 2
    assert_equal(expected, attributes(resource.render))
    assert_equal expected, attributes(resource.render(model.order(:id).to_a))
    assert_equal expected, attributes(resource.document.stream.each.to_a.join)
    assert_equal expected.last, JSON.parse(resource.render(id: record.id))["data"]["attributes"]
  end

  def test_days_and_times_in_the_application_s_own_form
    model = model_of(ActiveRecordWorld.sqlite::Base, COLUMNS)
    model.create!(born_on: Date.new(2024, 2, 29), seen_at: Time.utc(2024, 1, 31, 10))
    in_own_form do
      expected = parsed(model.order(:id).as_json(only: %i[born_on seen_at]))
      assert_equal "2024/02/29", expected[0]["born_on"]
      resource = resource(model, :born_on, :seen_at)
      assert_equal([expected] * 2, [model.order(:id), model.order(:id).to_a].map { |given| attributes(resource.render(given)) })
    end
  end

  def test_days_and_times_of_sequel_in_the_application_s_own_form
    database = Sequel.sqlite
    database.create_table(:days) do
      primary_key :id
      column :born_on, :date
      column :seen_at, :timestamp
    end
    database[:days].insert(born_on: Date.new(2024, 2, 29), seen_at: Time.utc(2024, 1, 31, 10))
    days = Class.new(Sequel::Model(database[:days]))
    resource = Class.new(Castellan::Resource) { attributes :born_on, :seen_at }.tap { |made| made.model(days) && made.type("days") }
    in_own_form do
      expected = parsed([days.first.values.slice(:born_on, :seen_at).as_json])
      assert_equal "2024/02/29", expected[0]["born_on"]
      assert_equal([expected] * 2, [days.dataset, days.all].map { |given| attributes(resource.render(given)) })
    end
  ensure
    database&.disconnect
    Sequel::DATABASES.delete(database)
  end

  def test_invalid_text_raises
    model = model_of(ActiveRecordWorld.sqlite::Base, { name: :string })
    insert(model, :name, "x'ff'")
    error = assert_raises(Castellan::EncodingError) { resource(model, :name).render }
    assert_includes error.message, "is not valid UTF-8"
  end

  private

  def in_own_form
    ActiveSupport::JSON::Encoding.use_standard_json_time_format = false
    yield
  ensure
    ActiveSupport::JSON::Encoding.use_standard_json_time_format = true
  end

  def assert_values(model, values)
    values.each { |name, texts| texts.each { |text| assert_value(model, name, insert(model, name, text), text) } }
    all = resource(model, *values.keys)
    assert_equal(parsed(model.order(:id).as_json(only: values.keys)), attributes(all.render))
  end

  def assert_value(model, name, id, text)
    expected = [parsed(model.find(id).as_json(only: [name]))]
    resource = resource(model, name)
    rows = [nil, "ruby"].map { |encoder| with_env("CASTELLAN_ENCODER" => encoder) { attributes(resource.render(model.where(id: id))) } }
    assert_equal [expected, expected], rows, "#{name} #{text}"
    assert_equal expected, attributes(resource.render([model.find(id)])), "#{name} #{text} of a record"
    assert_equal expected.first, JSON.parse(resource.render(id: id))["data"]["attributes"], "#{name} #{text} by id"
  end

  def parsed(value)
    JSON.parse(ActiveSupport::JSON.encode(value))
  end

  def attributes(text)
    JSON.parse(text)["data"].map { |object| object["attributes"] }
  end

  def insert(model, name, text)
    model.connection.select_value("INSERT INTO #{model.table_name} (#{name}) VALUES (#{text}) RETURNING id")
  end

  def resource(model, *names)
    Class.new(Castellan::Resource) do
      model model
      type "odd"
      attributes(*names)
    end
  end

  def model_of(base, columns)
    @count = @count.to_i + 1
    table = "odd_#{object_id}_#{@count}"
    base.connection.create_table(table) { |definition| columns.each { |name, type| definition.column(name, type) } }
    Class.new(base) do
      self.table_name = table
      def self.name = "Odd"
    end
  end
end
