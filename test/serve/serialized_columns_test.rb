# frozen_string_literal: true

require "test_helper"
require "active_record"
require "rack"
require "rack/mock_request"

# Columns whose values a coder makes of text (`serialize`, `store`), `attr_readonly`, and keys that cannot be written.
class SerializedColumnsTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Profile < Base
    serialize :anything, coder: JSON
    serialize :list, type: Array, coder: YAML
    serialize :notes, coder: YAML
    store :settings, accessors: %i[color], coder: JSON
    attr_readonly :login
    before_save { self.slug = login&.downcase }
  end

  class ProfileResource < Castellan::Resource
    model Profile
    type "profiles"
    attributes :anything, :list, :notes, :settings
    writable :anything, :list, :notes, :settings
  end

  class PageResource < Castellan::Resource
    model Profile
    type "pages"
    id :slug
    attributes :login
    writable :login
  end

  class Seat < Base
    self.primary_key = %i[hall number]
  end

  class Hall < Base
    has_many :doors
    has_many :keys, through: :doors
  end

  class Door < Base
    has_many :keys
  end

  class Key < Base; end

  class KeyResource < Castellan::Resource
    model Key
    type "keys"
  end

  class HallResource < Castellan::Resource
    model Hall
    type "halls"
    has_many :keys, resource: KeyResource
    writable :keys
  end

  def setup
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:profiles) { |table| table.text :anything, :list, :notes, :settings, :login, :slug }
    Base.connection.create_table(:seats, primary_key: %i[hall number]) { |table| table.integer :hall, :number }
    Base.connection.execute("CREATE VIEW notes AS SELECT id AS profile_id, notes FROM profiles")
    [Profile, Seat].each(&:reset_column_information)
    Profile.create!(anything: { "a" => [1] }, list: [1, "x"], notes: { "b" => nil }, settings: { color: "red" })
  end

  def teardown = Base.remove_connection

  def test_a_client_writes_what_it_reads
    read = JSON.parse(app.get("/profiles/1").body)["data"]
    assert_equal({ "a" => [1] }, read["attributes"]["anything"])
    Profile.update_all("anything = NULL, list = NULL, notes = NULL, settings = NULL")
    response = patch(**read["attributes"])
    assert_equal [200, read], [response.status, JSON.parse(response.body)["data"]]
    assert_equal read, JSON.parse(app.get("/profiles/1").body)["data"]
    assert_equal 200, patch(anything: nil, settings: {}).status
  end

  def test_a_value_of_another_class_is_422
    ["text", 7, { "a" => 1 }].each do |value|
      response = patch(list: value)
      assert_equal [422, "/data/attributes/list"], [response.status, JSON.parse(response.body).dig("errors", 0, "source", "pointer")]
    end
  end

  # Raises an error of its own, as the types of store_model do.
  class ColorType < ActiveRecord::Type::Value
    class Refused < StandardError; end

    def cast(value) = value.is_a?(Hash) ? value : raise(Refused, value.inspect)
  end

  def test_a_value_that_a_type_of_the_application_refuses_is_422
    model = Class.new(Base) do
      self.table_name = "profiles"
      attribute :notes, ColorType.new
      def self.name = "Color"
    end
    resource = resource(model, "colors") { writable :notes }
    app = Rack::MockRequest.new(Castellan.app { resource resource })
    input = JSON.generate(data: { type: "colors", attributes: { notes: 5 } })
    response = app.post("/colors", :input => input, "CONTENT_TYPE" => "application/vnd.api+json")
    assert_refused 422, "notes cannot be a number", "/data/attributes/notes", response
  end

  def test_openapi_says_no_type
    schemas = JSON.parse(app.get("/openapi.json").body)["components"]["schemas"]
    %w[profiles profiles.update].each do |name|
      assert_equal [{}], schemas[name]["properties"]["attributes"]["properties"].values_at("anything", "list", "settings").uniq
    end
  end

  def test_a_readonly_attribute_is_403_after_its_creation
    before = ActiveRecord.raise_on_assign_to_attr_readonly
    ActiveRecord.raise_on_assign_to_attr_readonly = true # as config.load_defaults 7.1; read by attr_readonly
    Profile.attr_readonly :login
    assert_equal 201, send_page("POST", "/pages", attributes: { login: "Ada" }).status
    response = send_page("PATCH", "/pages/ada", id: "ada", attributes: { login: "Bob" })
    assert_refused 403, "login cannot be changed", "/data/attributes/login", response
  ensure
    ActiveRecord.raise_on_assign_to_attr_readonly = before
  end

  def test_records_that_belong_to_records_in_between_are_403
    Base.connection.create_table(:halls)
    Base.connection.create_table(:doors) { |table| table.integer :hall_id }
    Base.connection.create_table(:keys) { |table| table.integer :door_id }
    Hall.create!.doors.create!.keys.create!
    Key.create!
    halls = Rack::MockRequest.new(Castellan.app do
      resource HallResource
      resource KeyResource
    end)
    assert_equal %w[1], JSON.parse(halls.get("/halls/1/relationships/keys").body)["data"].map { |key| key["id"] }
    response = halls.patch("/halls/1/relationships/keys", :input => JSON.generate(data: [{ type: "keys", id: "2" }]),
                                                          "CONTENT_TYPE" => "application/vnd.api+json")
    assert_equal [403, [1, nil]], [response.status, Key.order(:id).pluck(:door_id)], response.body
  end

  def test_a_record_without_an_id_is_not_created
    Profile.delete_all
    [{}, { login: "" }].each do |attributes|
      assert_refused 422, "id must not be null or empty", "/data/id", send_page("POST", "/pages", attributes: attributes)
    end
    assert_equal [200, { "data" => [] }], app.get("/pages").then { |pages| [pages.status, JSON.parse(pages.body)] }
  end

  def test_a_view_without_a_key_cannot_be_changed
    view = Class.new(Base) { self.table_name = "notes" }
    resource = resource(view, "notes") do
      id :profile_id
      deletable
    end
    error = assert_raises(Castellan::DeclarationError) { Castellan.app { resource resource } }
    assert_includes error.message, "has no primary key (a view has none), so its records cannot be changed or deleted"
  end

  def test_an_id_of_several_columns_cannot_be_chosen
    resource = resource(Seat, "seats") do
      id :hall, :number
      writable :id
    end
    error = assert_raises(Castellan::DeclarationError) { Castellan.app { resource resource } }
    assert_includes error.message, "writable :id: the id has several columns, so name them: :hall, :number"
    Base.connection.create_table(:parts, primary_key: %i[id partition_id]) { |table| table.integer :id, :partition_id }
    model = Class.new(Base) do
      self.table_name = "parts"
      self.primary_key = %i[id partition_id]
      def self.name = "Part"
    end
    resource = resource(model, "parts") do
      id :id, :partition_id
      writable :id
    end
    error = assert_raises(Castellan::DeclarationError) { Castellan.app { resource resource } }
    assert_includes error.message, "writable :id: the id has several columns, so clients cannot choose it"
  end

  def test_an_error_of_an_id_that_clients_write_as_an_attribute_points_to_it
    model = Class.new(Base) do
      self.table_name = "profiles"
      validates :slug, format: /\A[a-z]+\z/
      def self.name = "Profile"
    end
    resource = resource(model, "slugs") do
      id :slug
      writable :slug
    end
    app = Rack::MockRequest.new(Castellan.app { resource resource })
    input = JSON.generate(data: { type: "slugs", attributes: { slug: "UP" } })
    response = app.post("/slugs", :input => input, "CONTENT_TYPE" => "application/vnd.api+json")
    assert_refused 422, "Slug is invalid", "/data/attributes/slug", response
  end

  private

  def assert_refused(status, detail, pointer, response)
    problem = JSON.parse(response.body)["errors"].first
    assert_equal [status, detail, pointer], [response.status, problem["detail"], problem["source"]["pointer"]]
  end

  def resource(model, type, &block)
    Class.new(Castellan::Resource) do
      model model
      type type
      class_eval(&block)
    end
  end

  def app
    @app ||= Rack::MockRequest.new(Castellan.app do
      openapi title: "Profiles", version: "1"
      resource ProfileResource
      resource PageResource
    end)
  end

  def send_page(method, path, **data)
    app.request(method, path, :input => JSON.generate(data: { type: "pages", **data }), "CONTENT_TYPE" => "application/vnd.api+json")
  end

  def patch(**attributes)
    app.patch("/profiles/1", :input => JSON.generate(data: { type: "profiles", id: "1", attributes: attributes }),
                             "CONTENT_TYPE" => "application/vnd.api+json")
  end
end
