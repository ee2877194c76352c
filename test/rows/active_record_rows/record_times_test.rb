# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require_relative "../active_record_world"

# Records write the times that their readers return: unread, assigned, saved or computed by a SELECT.
module RecordTimesContract
  TIMES = ["2024-01-31 10:00:00.123456", "2024-02-29 23:59:59", nil, "1969-12-31 00:00:00"].freeze

  include ActiveRecordWorld::RolledBack

  def setup
    super
    @model = models::User
    @model.insert_all!(TIMES.each_with_index.map { |time, index| { id: 9_000 + index, email: "a", created_at: time } })
    @resource = Class.new(Castellan::Resource) { attributes :created_at }
    @resource.model(@model)
    @resource.type("users")
  end

  def test_times_that_were_never_read
    assert_written(records)
    assert_written(records.each(&:created_at))
    assert_written(records.each_with_index { |record, index| record.created_at if index.odd? })
    assert_written(records.each_with_index { |record, index| record.created_at if index.even? })
  end

  # Compares UTC only: Rails 8.1 keeps the offset in an unsaved record, a document writes the instant in UTC.
  def test_times_that_are_assigned_and_not_saved
    ["2024-05-06 07:08:09", "06.05.2024", "nonsense", nil, Time.utc(2020, 1, 2, 3, 4, 5.5r), 1].each do |value|
      assert_written(records.each_with_index { |record, index| record.created_at = value if index == 1 })
      assert_written(records.each { |record| record.created_at = value })
    end
  end

  def test_times_that_are_assigned_and_saved
    given = records
    given[1].update!(created_at: "2024-05-06 07:08:09")
    given[3].update_columns(created_at: Time.utc(2021))
    assert_written(given)
    assert_written([*records.first(2), @model.new(id: 1, created_at: "2024-05-06 07:08:09"), @model.new(id: 2)])
  end

  def test_times_that_another_expression_selects
    assert_written(@model.where(id: 9_000..).order(:id).select(:id, "'2024-01-31' AS created_at").to_a)
    assert_raises(ActiveModel::MissingAttributeError) { @resource.render(@model.where(id: 9_000..).select(:id).to_a) }
    mixed = [records.first, @model.where(id: 9_001).select(:id).first]
    assert_raises(ActiveModel::MissingAttributeError) { @resource.render(mixed) }
  end

  private

  def records = @model.where(id: 9_000..).order(:id).to_a

  def assert_written(given)
    written = JSON.parse(@resource.render(given))["data"].map { |one| one["attributes"]["created_at"] }
    assert_equal(given.map { |record| record.created_at.as_json }, written)
  end
end

class SQLiteRecordTimesTest < Minitest::Test
  include RecordTimesContract
  include ActiveRecordWorld::OnSqlite

  def test_a_text_is_not_converted_to_a_time
    given = records
    2.times { @resource.render(records) }
    made = allocated_objects { @resource.render(given) }
    read = records.each(&:created_at)
    assert_operator made - allocated_objects { @resource.render(read) }, :<, given.size * 8
  end
end

class PostgresRecordTimesTest < Minitest::Test
  include RecordTimesContract
  include ActiveRecordWorld::OnPostgres
end

# Rails' `postgresql_adapter_decode_dates`, since 7.2 the default of new applications: the driver returns dates as objects.
class PostgresDecodedDatesTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Tower < Base
  end

  class TowerResource < Castellan::Resource
    model Tower
    attributes :built_on, :ruined_on
  end

  def setup
    needs :postgres
    Base.establish_connection(Castellan::TestServers.postgres_url)
    Base.connection.create_table(:towers) { |table| table.date(:built_on, :ruined_on) }
    @decodes = Base.connection.class.respond_to?(:decode_dates)
    Base.connection.class.stub(:decode_dates, true) { Base.connection.reconnect! } if @decodes
    Base.connection.execute("INSERT INTO towers VALUES (1, '1190-05-01', NULL), (2, NULL, 'infinity'), (3, '0044-03-15 BC', '2024-02-29')")
  end

  def teardown
    Base.remove_connection
  end

  def test_records_are_written_like_their_rows
    assert_instance_of (@decodes ? Date : String), Tower.find_by(id: 1).built_on_before_type_cast
    [Tower.where(id: 1), Tower.order(:id)].each do |towers|
      assert_equal TowerResource.render(towers), TowerResource.render(towers.to_a)
    end
    assert_includes TowerResource.render(Tower.order(:id).to_a), '"built_on":"1190-05-01","ruined_on":null'
  end

  def test_dates_make_few_objects
    skip "needs the C extension" unless defined?(Castellan::Native)
    towers = Array.new(300) { |id| { id: id + 10, built_on: Date.new(1200) } }
    Tower.insert_all!(towers)
    records = Tower.where(id: 10..).to_a
    2.times { TowerResource.render(records) }
    assert_operator allocated_objects { TowerResource.render(records) }, :<, 300 * 4
  end
end
