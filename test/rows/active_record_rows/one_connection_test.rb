# frozen_string_literal: true

require "test_helper"
require "active_record"
Castellan::Resource && Castellan::Rows

# A document checks one connection out of the pool once, and checks it in when it is written.
class OneConnectionTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Tower < Base
    default_scope { where(ruined: false) }
    has_many :rooms
  end

  class Room < Base
    default_scope { where.not(name: nil) }
  end

  class RoomResource < Castellan::Resource
    model Room
    attributes :name
  end

  class TowerResource < Castellan::Resource
    model Tower
    attributes :name
    has_many :rooms, resource: RoomResource
  end

  def setup
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:towers) { |table| table.string(:name) && table.boolean(:ruined, default: false) }
    Base.connection.create_table(:rooms) { |table| table.integer(:tower_id) && table.string(:name) }
    Tower.create!(name: "Keep").rooms.create!(name: "Hall")
    render
  end

  def teardown
    Base.remove_connection
  end

  # Before ActiveRecord 7.2 the thread keeps the connection that it checked out first.
  if ActiveRecord::Base.respond_to?(:with_connection)
    def test_a_document_checks_one_connection_out_once
      Base.connection_pool.release_connection
      assert_equal 1, taken { assert_includes render, "Hall" }
    end
  end

  def test_given_records_without_queries_check_no_connection_out
    towers = Tower.preload(:rooms).to_a
    Base.connection_pool.release_connection
    assert_equal 0, taken { assert_includes TowerResource.render(towers, include: :rooms), "Hall" }
  end

  private

  def render = TowerResource.render(Tower.where(name: "Keep").order(:id), include: :rooms)

  def taken(&)
    count = 0
    trace = TracePoint.new(:call) { |point| count += 1 if point.method_id == :checkout && point.self.equal?(Base.connection_pool) }
    trace.enable(&)
    count
  end
end
