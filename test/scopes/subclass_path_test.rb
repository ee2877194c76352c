# frozen_string_literal: true

require "test_helper"
require "active_record"

# Scopes at the edge: a `from:` path to a subclass whose superclass alone has a scope, and a scope that uses `where!`.
class ScopeOfSubclassPathTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
  end

  class Vehicle < Base; end
  class Car < Vehicle; end

  class Driver < Base
    belongs_to :car, class_name: "ScopeOfSubclassPathTest::Car"
  end

  class VehicleResource < Castellan::Resource
    model Vehicle
    attributes :name
    scope { |vehicles, viewer| viewer == :admin ? vehicles : vehicles.where(secret: false) }
  end

  class DriverResource < Castellan::Resource
    model Driver
    attribute :car_name, from: "car.name"
  end

  class Boat < Base; end

  class BoatResource < Castellan::Resource
    model Boat
    attributes :name
    scope { |boats, _| boats.where!(secret: false) }
  end

  def setup
    Base.connection.create_table(:vehicles, force: true) do |table|
      table.string(:name)
      table.string(:type)
      table.boolean(:secret)
    end
    Base.connection.create_table(:boats, force: true) do |table|
      table.string(:name)
      table.boolean(:secret)
    end
    Base.connection.create_table(:drivers, force: true) { |table| table.integer(:car_id) }
    [Vehicle, Car, Boat, Driver].each(&:reset_column_information)
    Driver.create!(car: Car.create!(name: "Open", secret: false))
    Driver.create!(car: Car.create!(name: "Hidden", secret: true))
  end

  def test_the_scope_of_the_superclass_holds_for_a_path_to_a_subclass
    assert_equal ["Open", nil], names(:all, viewer: nil)
    assert_equal ["Open", nil], names(Driver.includes(:car).to_a, viewer: nil)
    assert_equal %w[Open Hidden], names(:all, viewer: :admin)
  end

  def test_a_scope_that_changes_its_relation_in_place_holds
    hidden = [Boat.create!(name: "Open", secret: false), Boat.create!(name: "Hidden", secret: true)].last
    assert_equal ["Open"], JSON.parse(BoatResource.render)["data"].map { |boat| boat["attributes"]["name"] }
    assert_equal 404, BoatResource.document(id: hidden.id).status
  end

  private

  def names(given, viewer:)
    JSON.parse(DriverResource.render(given, viewer: viewer))["data"].map { |driver| driver["attributes"]["car_name"] }
  end
end
