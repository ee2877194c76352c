# frozen_string_literal: true

require "test_helper"
require_relative "active_record_world"
require "sequel"

# Single-table inheritance: a document writes the values of each record's own class.
class SubclassesTest < Minitest::Test
  include ActiveRecordWorld::RolledBack
  include ActiveRecordWorld::OnSqlite

  # Named classes, because the type column holds their names.
  module Fleet
    class Resource < Castellan::Resource
      type "vehicles"
      attributes :wheels
    end
  end

  def teardown
    super
    (Fleet.constants - [:Resource]).each { |name| Fleet.send(:remove_const, name) }
  end

  def test_a_reader_of_a_subclass_loads_models
    ship = declare(:Ship) { define_method(:wheels) { -1 } }
    base.create!(wheels: 4)
    ship.create!(wheels: 0)
    assert_equal [4, -1], wheels(resource)
    assert_includes resource.document.explain, "reads wheels by its own method ("
  end

  def test_a_subclass_that_is_loaded_later
    base.create!(wheels: 4)
    shown = resource
    refute_includes shown.document.explain, "a method or a callback"
    assert_equal [4], wheels(shown)
    declare(:Ship) { define_method(:wheels) { -1 } }.create!(wheels: 0)
    assert_equal [4, -1], wheels(shown)
  end

  def test_an_attribute_type_or_callback_of_a_subclass_loads_models
    declare(:Kit) { attribute :wheels, :string }.create!(wheels: 3)
    assert_equal %w[3], wheels(resource)
    Fleet.send(:remove_const, :Kit)
    declare(:Found) { after_find { self.wheels = 7 } }.create!(wheels: 3)
    assert_equal [7], wheels(resource, Fleet::Found.all)
  end

  def test_a_time_of_several_classes_is_read_from_rows
    base.time_zone_aware_attributes = true # as in Rails
    declare(:Truck).create!(wheels: 4, built_at: Time.utc(2024, 1, 31))
    shown = resource { attributes :built_at }
    refute Castellan::Rows.for(base).types.needs_record?(:built_at), shown.document.explain
    assert_includes shown.render(base.all), '"built_at":"2024-01-31T00:00:00.000Z"'
  end

  def test_an_association_that_a_subclass_redeclares
    related = models::User
    base.belongs_to :user, class_name: related.name, optional: true
    declare(:Rented) { belongs_to :user, -> { where(code: "none") }, class_name: related.name, optional: true }
    user = related.create!(code: "some")
    [base, Fleet::Rented].each { |model| model.create!(user_id: user.id) }
    users = Class.new(Castellan::Resource) { type "users" }
    users.model(related)
    shown = resource { belongs_to :user, resource: users }
    linked = JSON.parse(shown.render(base.order(:id)))["data"].map { |one| one.dig("relationships", "user", "data", "id") }
    assert_equal [user.id.to_s, nil], linked
  end

  def test_a_reader_of_a_sequel_subclass
    database = Sequel.sqlite
    database.run("CREATE TABLE vehicles (id integer PRIMARY KEY, kind varchar(40), wheels integer)")
    base = Fleet.const_set(:Craft, Class.new(Sequel::Model(database[:vehicles])) { plugin :single_table_inheritance, :kind })
    boat = Fleet.const_set(:Boat, Class.new(base) { define_method(:wheels) { -1 } })
    base.create(wheels: 4)
    boat.create(wheels: 0)
    shown = Class.new(Fleet::Resource)
    shown.model(base)
    assert_equal [4, -1], wheels(shown)
  ensure
    forget(database)
  end

  private

  def base
    return Fleet::Base if Fleet.const_defined?(:Base, false)

    Fleet.const_set(:Base, Class.new(models::Base) { self.table_name = "vehicles" })
  end

  def declare(name, &body)
    Fleet.const_set(name, Class.new(base)).tap { |model| model.class_eval(&body) if body }
  end

  def resource(&body)
    shown = Class.new(Fleet::Resource)
    shown.model(base)
    shown.class_eval(&body) if body
    shown
  end

  def wheels(shown, *scope)
    JSON.parse(shown.render(*scope))["data"].map { |one| one["attributes"]["wheels"] }
  end
end
