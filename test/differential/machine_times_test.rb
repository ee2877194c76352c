# frozen_string_literal: true

require "test_helper"
require "support/model_document"
require "sequel"

# Sequel returns times in the machine's zone; if that is UTC, without an offset. Rows, records, blocks and
# meta objects all write such a time the same.
class MachineTimesTest < Minitest::Test
  NOON = Time.utc(2024, 1, 31, 12, 0, 0.5r)

  def test_a_time_of_a_machine_in_utc_is_utc_from_rows_and_from_records
    assert_equal ["2024-01-31T12:00:00.500Z"], written("UTC")
  end

  def test_a_time_of_another_machine_has_its_offset
    assert_equal ["2024-01-31T13:00:00.500+01:00"], written("Europe/Berlin")
  end

  def test_a_filter_finds_the_time_that_is_written
    with_env("TZ" => "Europe/Berlin") do
      letters = resource(model_of(Sequel.sqlite)) { attributes(:at) && filter(:at) }
      found = ->(at) { JSON.parse(letters.render(query: { "filter" => { "at" => at } }))["data"].size }
      assert_equal [1, 1, 0],
                   ["2024-01-31T13:00:00.500+01:00", "2024-01-31T12:00:00.500Z", "2024-01-31T13:00:00.500Z"].map { |at| found.call(at) }
    end
  end

  # As the extension named_timezones does.
  def test_rows_are_written_like_records_if_times_are_date_times
    output, Sequel::Deprecation.output = Sequel::Deprecation.output, nil
    Sequel.datetime_class = DateTime
    database = Sequel.sqlite
    database.timezone = :utc
    model = model_of(database)
    letters = resource(model) { attributes :at }
    assert_equal letters.render(model.all), letters.render(model.order(:id))
  ensure
    Sequel.datetime_class = Time
    Sequel::Deprecation.output = output
  end

  private

  def written(zone)
    with_env("TZ" => zone) do
      model = model_of(Sequel.sqlite)
      sources = [model.order(:id), model.all, model.first, [{ id: 1, at: model.first.at }]]
      documents = resources(model).product(sources).map { |resource, given| JSON.parse(resource.render(given))["data"] }
      verified = Castellan.verify { resources(model).product(sources.first(2)) { |resource, given| resource.render(given) } }
      assert_equal [10, []], [verified.documents, verified.differences.map(&:to_s)]
      resources(model).each { |resource| assert_empty Castellan::TestSupport::ModelDocument.differences(resource.document).map(&:to_s) }
      documents.flat_map { |data| [data].flatten.flat_map { |object| [object["attributes"]["at"], object.dig("meta", "at")].compact } }.uniq
    end
  end

  def model_of(database)
    database.create_table(:letters) do
      primary_key :id
      DateTime :at
    end
    Class.new(Sequel::Model(database[:letters])).tap { |model| model.create(at: NOON.getlocal) }
  end

  # By a column, a block of the row, a block of the record, an overridden reader, and a meta object.
  def resources(model)
    loud = Class.new(model) { def at = super.dup }
    [resource(model) { attributes :at }, resource(model) { attribute(:at, columns: :at) { |row| row.at } },
     resource(model) { attribute(:at) { |letter| letter.is_a?(Hash) ? letter[:at] : letter.at } }, resource(loud) { attributes :at },
     resource(model) { attributes(:at) && meta(columns: :at) { |row| { at: row.at } } }]
  end

  def resource(source, &body)
    Class.new(Castellan::Resource) do
      model source
      type "letters"
      class_exec(&body)
    end
  end
end
