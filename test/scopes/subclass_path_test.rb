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

# A `from:` path through a relationship to a resource with `types` is null where the scope of the row's type hides it.
class ScopeOfTypesPathTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
  end

  class Page < Base; end
  class Draft < Page; end

  class Visit < Base
    belongs_to :page, class_name: "ScopeOfTypesPathTest::Page"
  end

  class PageResource < Castellan::Resource
    model Page
    type "pages"
    types "PlainResource", "DraftResource"
    attributes :title
  end

  class PlainResource < PageResource
    type "plain"
  end

  class DraftResource < PageResource
    model Draft
    type "drafts"
    scope { |drafts, viewer| viewer == :editor ? drafts : drafts.where(shared: true) }
  end

  class VisitResource < Castellan::Resource
    model Visit
    attribute :title, from: "page.title"
    belongs_to :page
    filter :title
    sort :title
  end

  def setup
    Base.connection.create_table(:pages, force: true) { |table| table.string(:title, :type) && table.boolean(:shared) }
    Base.connection.create_table(:visits, force: true) { |table| table.integer(:page_id) }
    [Page, Draft, Visit].each(&:reset_column_information)
    [Page.create!(title: "Plain"), Draft.create!(title: "Shared", shared: true), Draft.create!(title: "Hidden")].each do |page|
      Visit.create!(page: page)
    end
  end

  def test_the_scope_of_a_type_holds_for_a_path
    [:all, Visit.includes(:page).to_a, Visit.all.to_a].each do |given|
      assert_equal ["Plain", "Shared", nil], titles(given)
      assert_equal %w[Plain Shared Hidden], titles(given, viewer: :editor)
    end
    assert_equal [nil, "Plain", "Shared"], titles(:all, sort: "title")
    assert_includes VisitResource.document.explain, "scope of ScopeOfTypesPathTest::DraftResource"
  end

  class HitResource < Castellan::Resource
    model Visit
    attribute :title, from: "page.title"
  end

  def test_the_scope_of_a_type_holds_for_a_path_without_a_relationship
    [:all, Visit.includes(:page).to_a].each do |given|
      assert_equal ["Plain", "Shared", nil], titles(given, resource: HitResource)
      assert_equal %w[Plain Shared Hidden], titles(given, resource: HitResource, viewer: :editor)
    end
  end

  def test_a_filter_does_not_find_what_the_scope_of_a_type_hides
    assert_empty titles(:all, filter: { title: "Hidden" })
    assert_equal ["Hidden"], titles(:all, filter: { title: "Hidden" }, viewer: :editor)
    assert_equal ["Shared"], titles(:all, filter: { title: "Shared" })
  end

  def test_a_path_through_several_resources_of_which_one_has_a_scope_is_refused
    resource = Class.new(VisitResource) { belongs_to :page, resource: [PlainResource, DraftResource] }
    error = assert_raises(Castellan::DeclarationError) { resource.render }
    assert_includes error.message, "from: walks page, which has several resources, and ScopeOfTypesPathTest::DraftResource has a scope"
  end

  private

  def titles(given, resource: VisitResource, **asked)
    JSON.parse(resource.render(given, **asked))["data"].map { |visit| visit["attributes"]["title"] }
  end
end
