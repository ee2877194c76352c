# frozen_string_literal: true

require "test_helper"
require "serve/journal_requests"

# Collections of several types by single table inheritance: `types` of a resource.
module TypesContract
  include JournalRequests

  RESOURCES = <<~RUBY
    class MakerResource < Castellan::Resource
      model Maker
      type "makers"
      attributes :name
      has_many :vehicles, resource: "VehicleResource"
      belongs_to :flagship, resource: "VehicleResource"
    end

    class VehicleResource < Castellan::Resource
      model Vehicle
      types "CarResource", "TruckResource"
      attributes :name
      belongs_to :maker
      scope { |vehicles, team| team.to_i.zero? ? vehicles : vehicles.where(team: team) }
      filter :name, :wheels
      sort :name, :wheels
      page size: 10, max_size: 50, count: true
      self_links "/vehicles"
      writable :name, :maker
      deletable
    end

    class CarResource < VehicleResource
      model Car
      type "cars"
      attributes :doors
      writable :doors
    end

    class TruckResource < VehicleResource
      model Truck
      type "trucks"
      attribute(:label, columns: %i[name load]) { |row| "\#{row.name} (\#{row.load} t)" }
      has_many :trailers
      writable :load, :trailers
    end

    class TrailerResource < Castellan::Resource
      model Trailer
      type "trailers"
      attributes :axles
    end
  RUBY

  # The garage: its tables, models and resources, once for each database and ORM.
  def self.declare(journal)
    return journal.models::Garage if journal.models.const_defined?(:Garage, false)

    key = journal.send(:sqlite?) ? "integer PRIMARY KEY" : "bigserial PRIMARY KEY"
    %w[trailers vehicles makers].each { |table| journal.run("DROP TABLE IF EXISTS #{table}") }
    journal.run("CREATE TABLE makers (id #{key}, name varchar(40), flagship_id bigint)")
    journal.run("CREATE TABLE vehicles (id #{key}, type varchar(80), name varchar(40) NOT NULL, maker_id bigint, doors integer, " \
                "load integer, wheels integer NOT NULL DEFAULT 4, team integer)")
    journal.run("CREATE TABLE trailers (id #{key}, truck_id bigint, axles integer)")
    journal.models.const_set(:Garage, Module.new).tap do |garage|
      journal.is_a?(SequelJournal) ? sequel(garage, journal) : active_record(garage, journal)
      garage.module_eval(RESOURCES)
    end
  end

  def self.active_record(garage, journal)
    garage.const_set(:Base, journal.models::Base)
    garage.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Maker < Base
        has_many :vehicles
        belongs_to :flagship, class_name: "\#{module_parent}::Vehicle", optional: true
      end
      class Vehicle < Base
        self.store_full_sti_class = false
        def self.compute_type(name) = module_parent.const_defined?(name, false) ? module_parent.const_get(name) : super
        belongs_to :maker, optional: true
        validates :name, length: { minimum: 2 }
      end
      class Car < Vehicle; end
      class SportsCar < Car; end
      class Truck < Vehicle; has_many :trailers; end
      class Bike < Vehicle; end
      class Trailer < Base; belongs_to :truck, optional: true; end
    RUBY
  end

  def self.sequel(garage, journal)
    garage.const_set(:DB, journal.models::DB)
    map = { model_map: ->(name) { garage.const_get(name) if name && garage.const_defined?(name, false) },
            key_map: ->(model) { model.name.split("::").last } }
    garage.const_set(:Maker, Class.new(Sequel::Model(garage::DB[:makers])))
    garage.const_set(:Trailer, Class.new(Sequel::Model(garage::DB[:trailers])))
    garage.const_set(:Vehicle, Class.new(Sequel::Model(garage::DB[:vehicles])) do
      plugin :single_table_inheritance, :type, **map
      many_to_one :maker, class: garage::Maker, key: :maker_id

      def validate
        super
        errors.add(:name, "is too short") if name.to_s.size < 2
      end
    end)
    garage.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Car < Vehicle; end
      class SportsCar < Car; end
      class Bike < Vehicle; end
      class Truck < Vehicle; end
    RUBY
    garage::Truck.one_to_many :trailers, class: garage::Trailer, key: :truck_id
    garage::Maker.one_to_many :vehicles, class: garage::Vehicle, key: :maker_id
    garage::Maker.many_to_one :flagship, class: garage::Vehicle, key: :flagship_id
  end

  def setup
    garage = @garage = TypesContract.declare(journal)
    %w[trailers vehicles makers].each { |table| journal.run("DELETE FROM #{table}") }
    journal.run("INSERT INTO makers (id, name, flagship_id) VALUES (1, 'Volvo', 2), (2, 'Fiat', 5)")
    journal.run("INSERT INTO vehicles (id, type, name, maker_id, doors, load, wheels, team) VALUES " \
                "(1, 'Car', 'Amazon', 1, 4, NULL, 4, 1), (2, 'Truck', 'Titan', 1, NULL, 18, 6, 1), " \
                "(3, 'SportsCar', 'Barchetta', 2, 2, NULL, 4, 2), (4, 'Truck', 'Daily', 2, NULL, 7, 4, 1), " \
                "(5, 'Bike', 'Hidden', 2, NULL, NULL, 2, 1), (6, NULL, 'Plain', 2, NULL, NULL, 4, 1)")
    journal.run("INSERT INTO trailers (id, truck_id, axles) VALUES (1, 2, 3), (2, 2, 2)")
    %w[makers vehicles trailers].each { |table| journal.run("SELECT setval('#{table}_id_seq', 100)") } unless journal.send(:sqlite?)
    @app = serve do |_models|
      resource garage::VehicleResource, at: "vehicles"
      resource garage::MakerResource
      resource garage::TrailerResource
      operations
      openapi
      pages
    end
  end

  def test_each_row_of_a_collection_is_written_as_the_resource_of_its_type
    _, document = get("/vehicles?sort=name")
    assert_equal [%w[cars 1], %w[cars 3], %w[trucks 4], %w[trucks 2]], identifiers(document["data"])
    assert_equal({ "name" => "Amazon", "doors" => 4 }, document["data"][0]["attributes"])
    assert_equal({ "name" => "Daily", "label" => "Daily (7 t)" }, document["data"][2]["attributes"])
    assert_equal %w[maker], document["data"][0]["relationships"].keys
    assert_equal %w[maker trailers], document["data"][3]["relationships"].keys
    assert_equal "/vehicles/2", document["data"][3]["links"]["self"]
    assert_equal 4, document["meta"]["total"]
    refute document.key?("included")
  end

  def test_no_model_is_made_of_a_row
    explanation = @garage::VehicleResource.document(query: { "include" => "trailers" }).explain
    refute_match(/models of this type are loaded/, explanation)
    assert_includes explanation, "trailers: linkage, and the included records:"
  end

  def test_filters_sorts_and_pages_go_over_all_types
    assert_equal %w[2], ids("/vehicles?filter[wheels][gt]=4")
    assert_equal %w[2 4 3 1], ids("/vehicles?sort=-name")
    first = get("/vehicles?sort=name&page[size]=2").last
    assert_equal [%w[1 3], 4], [first["data"].map { |one| one["id"] }, first["meta"]["total"]]
    assert_equal %w[4 2], ids(first["links"]["next"])
    assert_bad_parameter "sort", "/vehicles?sort=doors"
  end

  def test_one_record_is_of_its_type
    assert_equal %w[trucks 2], get("/vehicles/2").last["data"].values_at("type", "id")
    assert_equal %w[cars 3], get("/vehicles/3").last["data"].values_at("type", "id")
    assert_equal([404, 404, 404], %w[5 6 99].map { |id| get("/vehicles/#{id}").first.status })
  end

  def test_the_members_of_each_type_can_be_included_and_chosen
    _, document = get("/vehicles?include=maker,trailers&sort=name&fields[cars]=doors&fields[trucks]=name,trailers")
    assert_equal [{ "doors" => 4 }, { "doors" => 2 }, { "name" => "Daily" }, { "name" => "Titan" }],
                 document["data"].map { |one| one["attributes"] }
    assert_equal [%w[makers 1], %w[makers 2], %w[trailers 1], %w[trailers 2]], identifiers(document["included"]).sort
    assert_bad_parameter "include", "/vehicles?include=wings", "wings is not a relationship of cars or trucks"
    assert_bad_parameter "fields[vehicles]", "/vehicles?fields[vehicles]=name"
  end

  # A type whose relationship is hidden, or left out by fixed fields, and one where it can be included.
  def test_a_relationship_is_included_only_for_the_types_that_show_it
    garage = @garage
    unless garage.const_defined?(:ShyResource)
      garage.const_set(:ShyResource, Class.new(garage::VehicleResource) { types "ShyCarResource", "ShyTruckResource" })
      garage.const_set(:ShyCarResource, Class.new(garage::ShyResource) { model(garage::Car) && type("cars") })
      garage.const_set(:ShyTruckResource, Class.new(garage::ShyResource) do
        [model(garage::Truck), type("trucks")]
        belongs_to :maker, if: ->(viewer) { viewer == "staff" }
      end)
    end
    included = ->(query, **asked) { identifiers(JSON.parse(garage::ShyResource.render(query: query, **asked))["included"]) }
    names = { "fields" => { "trucks" => "name" } }
    garage::Maker.where(id: 1).update(flagship_id: nil) && garage::Vehicle.where(id: 1).update(maker_id: nil)
    2.times do
      assert_equal [%w[makers 2]], included.call({ "include" => "maker" })
      assert_equal [%w[makers 1], %w[makers 2]], included.call({ "include" => "maker" }, viewer: "staff").sort
      assert_equal [%w[makers 1], %w[makers 2]], included.call({ "include" => "maker", **names }, viewer: "staff").sort
      assert_equal [%w[makers 2]], included.call({ "include" => "maker" }, fields: { trucks: %i[name] }, viewer: "staff")
    end
  end

  def test_a_primary_record_is_not_included_again
    _, document = get("/vehicles?include=maker.vehicles&sort=name")
    assert_equal %w[makers makers], document["included"].map { |one| one["type"] }
    linked = document["included"].find { |one| one["id"] == "2" }["relationships"]["vehicles"]["data"]
    assert_equal [%w[cars 3], %w[trucks 4]], identifiers(linked).sort
  end

  def test_relationships_lead_to_the_types
    _, document = get("/makers/1?include=vehicles,flagship")
    assert_equal [%w[cars 1], %w[trucks 2]], identifiers(document["data"]["relationships"]["vehicles"]["data"]).sort
    assert_equal({ "type" => "trucks", "id" => "2" }, document["data"]["relationships"]["flagship"]["data"])
    assert_equal [%w[cars 1], %w[trucks 2]], identifiers(document["included"]).sort
    assert_equal [%w[cars 1], %w[trucks 2]], identifiers(get("/makers/1/vehicles?sort=name").last["data"])
    assert_equal [%w[cars 1], %w[trucks 2]], identifiers(get("/makers/1/relationships/vehicles").last["data"]).sort
    assert_equal "trucks", get("/makers/1/flagship").last["data"]["type"]
    assert_nil get("/makers/2/flagship").last["data"] # a bike has no resource
    assert_nil get("/makers/2").last["data"]["relationships"]["flagship"]["data"]
  end

  def test_relationships_of_a_record_are_those_of_its_type
    assert_equal %w[1 2], ids("/vehicles/2/trailers").sort
    assert_equal "Volvo", get("/vehicles/1/maker").last["data"]["attributes"]["name"]
    assert_equal([404, 404, 404], ["/vehicles/1/trailers", "/vehicles/5/maker", "/vehicles/1/wings"].map { |path| get(path).first.status })
  end

  def test_a_scope_narrows_all_types
    assert_equal %w[1 4 2], ids("/vehicles?sort=name", HTTP_AUTHORIZATION: "1")
    assert_equal 404, get("/vehicles/3", HTTP_AUTHORIZATION: "1").first.status
    assert_equal 404, get("/vehicles/3/maker", HTTP_AUTHORIZATION: "1").first.status
    assert_equal 404, send_data("PATCH", "/vehicles/3", { type: "cars", id: "3", attributes: { name: "Mine" } },
                                HTTP_AUTHORIZATION: "1").first.status
  end

  def test_the_scope_of_one_type_narrows_that_type
    garage = @garage
    unless garage.const_defined?(:FewResource)
      garage.const_set(:FewResource, Class.new(garage::VehicleResource) { types "FewCarResource", "FewTruckResource" })
      garage.const_set(:FewCarResource, Class.new(garage::FewResource) { model garage::Car })
      garage.const_set(:FewTruckResource, Class.new(garage::FewResource) do
        model garage::Truck
        scope { |trucks, _| trucks.where(load: 7) }
      end)
    end
    @app = serve { |_| resource garage::FewResource, at: "few" }
    document = get("/few?sort=name&page[size]=2").last
    assert_equal [3, %w[1 3]], [document["meta"]["total"], document["data"].map { |one| one["id"] }]
    assert_equal %w[4], ids(document["links"]["next"])
    assert_equal([404, 404, 404], ["/few/2", "/few/2/maker", "/few/2/relationships/maker"].map { |path| get(path).first.status })
    assert_equal 404, request("DELETE", "/few/2").status
  end

  # Wherever the records are read.
  def test_the_scope_of_all_narrows_a_type_with_a_scope_of_its_own
    garage = @garage
    unless garage.const_defined?(:TeamResource)
      garage.const_set(:TeamResource, Class.new(garage::VehicleResource) { types "TeamCarResource", "TeamTruckResource" })
      garage.const_set(:TeamCarResource, Class.new(garage::TeamResource) do
        model garage::Car
        type "cars"
        scope { |cars, _| cars.where(wheels: 4) }
      end)
      garage.const_set(:TeamTruckResource, Class.new(garage::TeamResource) { model(garage::Truck) && type("trucks") })
      garage.const_set(:TeamMakerResource, Class.new(Castellan::Resource) do
        model garage::Maker
        type "makers"
        has_many :vehicles, resource: "TeamResource"
        belongs_to :flagship, resource: "TeamResource"
      end)
    end
    journal.run("UPDATE makers SET flagship_id = 3 WHERE id = 2")
    @app = serve { |_| resource garage::TeamMakerResource }
    document = get("/makers/2?include=vehicles,flagship", HTTP_AUTHORIZATION: "1").last
    assert_equal [%w[trucks 4]], identifiers(document["data"]["relationships"]["vehicles"]["data"])
    assert_nil document["data"]["relationships"]["flagship"]["data"]
    assert_equal [%w[trucks 4]], identifiers(document["included"])
    assert_nil get("/makers/2/flagship", HTTP_AUTHORIZATION: "1").last["data"]
    assert_equal %w[4], ids("/makers/2/vehicles", HTTP_AUTHORIZATION: "1")
    assert_equal "3", get("/makers/2/flagship", HTTP_AUTHORIZATION: "2").last["data"]["id"]
  end

  def test_records_that_documents_leave_out_stay_when_a_relationship_is_replaced
    garage = @garage
    garage.const_set(:FleetResource, Class.new(garage::MakerResource) { writable :vehicles }) unless garage.const_defined?(:FleetResource)
    @app = serve { |_| resource garage::FleetResource, at: "fleets" }
    data = [{ type: "cars", id: "3" }]
    response, = send_data("PATCH", "/fleets/2/relationships/vehicles", data)
    assert_equal 204, response.status
    assert_equal [3, 5, 6], journal.rows("SELECT id FROM vehicles WHERE maker_id = 2 ORDER BY id").map { |row| row["id"].to_i }
  end

  def test_the_resource_of_the_base_class_takes_all_other_rows
    garage = @garage
    unless garage.const_defined?(:AllResource)
      garage.const_set(:AllResource, Class.new(garage::VehicleResource) { types "AllCarResource", "OtherResource" })
      garage.const_set(:AllCarResource, Class.new(garage::AllResource) { model garage::Car; type "cars" }) # rubocop:disable Style/Semicolon
      garage.const_set(:OtherResource, Class.new(garage::AllResource) do
        type "others"
        scope { |vehicles, _| vehicles.where(id: [3, 4, 5, 6]) }
      end)
    end
    assert_equal [%w[cars 1], %w[cars 3], %w[others 4], %w[others 5], %w[others 6]],
                 identifiers(JSON.parse(garage::AllResource.render(query: { "sort" => "name" }))["data"]).sort
    @app = serve do |_|
      resource garage::AllResource, at: "all"
      operations
    end
    assert_equal([404, 204], %w[3 4].map { |id| operations([{ op: "remove", ref: { type: "others", id: id } }]).status })
    unless garage.const_defined?(:AllMakerResource)
      garage.const_set(:AllMakerResource, Class.new(Castellan::Resource) do
        model garage::Maker
        type "makers"
        belongs_to :flagship, resource: "AllResource"
        writable :flagship
      end)
    end
    @app = serve { |_| resource garage::AllMakerResource }
    linked = [%w[others 3], %w[cars 3], %w[others 5]].map { |type, id|
      send_data("PATCH", "/makers/1/relationships/flagship", { type: type, id: id }).first.status
    }
    assert_equal [404, 204, 204], linked
  end

  def test_a_record_is_created_as_the_type_of_the_document
    response, document = send_data("POST", "/vehicles", type: "trucks", attributes: { name: "Actros", load: 20 },
                                                        relationships: { maker: { data: { type: "makers", id: "2" } } })
    assert_equal [201, "trucks", "Actros (20 t)"], [response.status, document["data"]["type"], document["data"]["attributes"]["label"]]
    assert_equal "/vehicles/#{document["data"]["id"]}", response["location"]
    assert_equal document, get(response["location"]).last
    assert_equal "Truck", journal.rows("SELECT type FROM vehicles WHERE name = 'Actros'").first["type"]
    assert_pointer 409, "/data/type", send_data("POST", "/vehicles", type: "makers", attributes: { name: "Actros" })
    assert_pointer 409, "/data/type", send_data("POST", "/vehicles", type: "vehicles", attributes: { name: "Actros" })
    assert_pointer 400, "/data/type", send_data("POST", "/vehicles", type: 7, attributes: { name: "Actros" })
    assert_pointer 400, "/data/attributes/load", send_data("POST", "/vehicles", type: "cars", attributes: { name: "Panda", load: 3 })
    assert_pointer 422, "/data/attributes/name", send_data("POST", "/vehicles", type: "cars", attributes: { name: "P" })
    assert_equal 400, send_data("POST", "/vehicles", []).first.status
  end

  def test_a_record_is_changed_and_deleted_as_its_type
    response, = get("/vehicles/2")
    changed, document = send_data("PATCH", "/vehicles/2", { type: "trucks", id: "2", attributes: { load: 16 } },
                                  HTTP_IF_MATCH: response["etag"])
    assert_equal [200, "Titan (16 t)"], [changed.status, document["data"]["attributes"]["label"]]
    assert_equal 412, send_data("PATCH", "/vehicles/2", { type: "trucks", id: "2", attributes: { load: 1 } },
                                HTTP_IF_MATCH: response["etag"]).first.status
    assert_equal changed["etag"], get("/vehicles/2").first["etag"]
    assert_pointer 409, "/data/type", send_data("PATCH", "/vehicles/2", type: "cars", id: "2", attributes: { name: "Car" })
    assert_equal 204, send_data("PATCH", "/vehicles/2/relationships/trailers", [{ type: "trailers", id: "2" }]).first.status
    assert_equal %w[2], ids("/vehicles/2/trailers")
    assert_equal [204, 404, 404], [request("DELETE", "/vehicles/1"), request("DELETE", "/vehicles/1"), request("DELETE", "/vehicles/5")]
      .map(&:status)
  end

  def test_operations_find_the_type
    add = { op: "add", data: { type: "cars", lid: "a", attributes: { name: "Panda", doors: 4 } } }
    update = { op: "update", data: { type: "cars", lid: "a", attributes: { doors: 2 } } }
    by_href = { op: "update", href: "/vehicles/2", data: { type: "trucks", id: "2", attributes: { load: 1 } } }
    new = { op: "add", href: "/vehicles", data: { type: "trucks", attributes: { name: "Stralis", load: 9 } } }
    response = operations([add, update, by_href, new, { op: "remove", ref: { type: "cars", id: "3" } }])
    assert_equal 200, response.status, response.body
    assert_equal ["Panda", "Panda", "Titan", "Stralis", nil],
                 JSON.parse(response.body)["atomic:results"].map { |one| one.dig("data", "attributes", "name") }
    changed = ["doors FROM vehicles WHERE name = 'Panda'", "load FROM vehicles WHERE id = 2", "id FROM vehicles WHERE id = 3"]
    assert_equal [[2], [1], []], changed.map { |sql| journal.rows("SELECT #{sql}").flat_map(&:values) }
    assert_equal 404, operations([{ op: "remove", href: "/vehicles/5" }]).status
    assert_equal 404, operations([{ op: "remove", ref: { type: "vehicles", id: "5" } }]).status
    assert_equal 404, operations([{ op: "add", href: "/vehicles", data: { type: "makers" } }]).status
  end

  def test_both_encoders_write_the_same_bytes
    query = { "include" => "maker.vehicles,trailers", "sort" => "name" }
    documents = [nil, "ruby"].map do |encoder|
      before = ENV.fetch("CASTELLAN_ENCODER", nil)
      ENV["CASTELLAN_ENCODER"] = encoder
      [nil, 2].map { |id| @garage::VehicleResource.render(query: id ? query.slice("include") : query, **(id ? { id: id } : {})) }
    ensure
      ENV["CASTELLAN_ENCODER"] = before
    end
    assert_equal documents.first, documents.last
    assert_equal "trucks", JSON.parse(documents.first.last)["data"]["type"]
  end

  def test_models_say_the_same
    verification = Castellan.verify { @garage::VehicleResource.render(query: { "include" => "maker,trailers", "sort" => "name" }) }
    assert_empty verification.differences
    vehicles = @garage::Vehicle.order(:name)
    assert_equal get("/vehicles?sort=name").last["data"], JSON.parse(@garage::VehicleResource.render(vehicles.to_a))["data"]
    assert_equal "cars", JSON.parse(@garage::VehicleResource.render(@garage::Car.first))["data"]["type"]
  end

  def test_a_stream_has_the_same_bytes
    document = @garage::VehicleResource.document(query: { "sort" => "name" })
    assert_equal @garage::VehicleResource.render(query: { "sort" => "name" }), document.stream.each.to_a.join
  end

  def test_kept_documents_follow_every_type
    @garage.const_set(:KeptVehicleResource, Class.new(@garage::VehicleResource) { types "KeptCarResource", "KeptTruckResource" }) \
      unless @garage.const_defined?(:KeptVehicleResource)
    garage = @garage
    unless garage.const_defined?(:KeptCarResource)
      garage.const_set(:KeptCarResource, Class.new(garage::KeptVehicleResource) { model garage::Car })
      garage.const_set(:KeptTruckResource, Class.new(garage::KeptVehicleResource) do
        model garage::Truck
        has_many :trailers, resource: "TrailerResource"
      end)
      garage::KeptVehicleResource.cache :exact
    end
    versions = journal.versions
    versions.install(%w[vehicles makers trailers])
    Castellan.stub(:keeper, Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)) do
      first = kept
      assert first.rendering.kept?, first.explain
      assert_equal first.to_json, kept.to_json
      journal.run("UPDATE trailers SET axles = 9 WHERE id = 1")
      assert_includes kept.to_json, '"axles":9'
      journal.run("UPDATE vehicles SET type = 'Truck' WHERE id = 1")
      assert_equal 3, JSON.parse(kept.to_json)["data"].count { |one| one["relationships"].key?("trailers") }
    end
  ensure
    versions&.uninstall(%w[vehicles makers trailers])
  end

  def test_openapi_and_typescript_have_unions
    schema = JSON.parse(request("GET", "/openapi.json").body)
    items = schema.dig("paths", "/vehicles", "get", "responses", "200", "content", JSON_API, "schema", "properties", "data", "items")
    assert_equal [{ "$ref" => "#/components/schemas/cars" }, { "$ref" => "#/components/schemas/trucks" }], items["oneOf"]
    body = schema.dig("paths", "/vehicles", "post", "requestBody", "content", JSON_API, "schema", "properties", "data")
    assert_equal %w[cars.create trucks.create], body["oneOf"].map { |one| one["$ref"].split("/").last }
    assert schema.dig("paths", "/vehicles/{id}/trailers", "get")
    assert_equal %w[patch post delete], schema.dig("paths", "/vehicles/{id}/relationships/trailers").keys - %w[parameters get]
    text = Castellan::CLI::TypeScript.new([@garage::VehicleResource, @garage::CarResource, @garage::TruckResource].map(&:definition)).to_s
    assert_match(/^export type .*Vehicle = .*Car \| .*Truck;/, text)
  end

  def test_a_page_shows_all_types
    page = request("GET", "/vehicles?sort=name", HTTP_ACCEPT: "text/html").body
    ["Amazon", "Titan (18 t)", 'href="/vehicles/2"', "trailers"].each { |text| assert_includes page, text }
    assert_equal 200, request("GET", "/vehicles/2/trailers", HTTP_ACCEPT: "text/html").status
  end

  def test_a_list_of_several_tables_has_each_of_its_types
    vehicles, makers = @garage::VehicleResource, Class.new(@garage::MakerResource) { sort :name }
    everything = Class.new(Castellan::Resource) do
      type "everything"
      types vehicles, makers
      sort default: "name"
    end
    @app = serve { |_models| resource everything }
    assert_equal [%w[cars 1], %w[trucks 4], %w[makers 2], %w[trucks 2], %w[makers 1]],
                 identifiers(get("/everything", HTTP_AUTHORIZATION: "1").last["data"])
  end

  def test_wrong_declarations_name_what_is_wrong
    garage = @garage
    assert_match(/must be a subclass of an unnamed resource/, refused { types garage::CarResource, garage::TrailerResource })
    assert_match(/name the resources/, assert_raises(Castellan::DeclarationError) { Class.new(garage::VehicleResource) { types } }.message)
    other = Class.new(garage::MakerResource) { types "MakerResource" }
    assert_match(/no column of single table inheritance/, assert_raises(Castellan::DeclarationError) { other.render }.message)
  end

  private

  def kept
    @garage::KeptVehicleResource.document(query: { "include" => "trailers" })
  end

  def refused(&block)
    mixed = Class.new(@garage::VehicleResource, &block)
    assert_raises(Castellan::DeclarationError) { mixed.render }.message
  end

  def operations(list)
    request("POST", "/operations", input: JSON.generate("atomic:operations": list),
                                   "CONTENT_TYPE" => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"')
  end

  def identifiers(objects) = objects.map { |one| one.values_at("type", "id") }

  def assert_pointer(status, pointer, (response, document))
    assert_equal [status, pointer], [response.status, document["errors"]&.first&.dig("source", "pointer")], response.body
  end
end

JournalRequests.on_every_database(TypesContract)

# A polymorphic belongs_to of ActiveRecord, whose column names the base class of single table inheritance.
module PolymorphicTypesContract
  include JournalRequests

  def setup
    garage = @garage = TypesContract.declare(journal)
    journal.run("DROP TABLE IF EXISTS remarks")
    journal.run("CREATE TABLE remarks (id integer PRIMARY KEY, subject_type varchar(80), subject_id bigint)")
    %w[vehicles makers].each { |table| journal.run("DELETE FROM #{table}") }
    journal.run("INSERT INTO makers (id, name) VALUES (1, 'Volvo')")
    journal.run("INSERT INTO vehicles (id, type, name) VALUES (1, 'Car', 'Amazon'), (2, 'Truck', 'Titan'), (3, 'Bike', 'Hidden')")
    unless garage.const_defined?(:RemarkResource)
      garage.module_eval("class Remark < Base; belongs_to :subject, polymorphic: true; end", __FILE__, __LINE__)
      garage.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        class RemarkResource < Castellan::Resource
          model Remark
          type "remarks"
          belongs_to :subject, resource: %w[VehicleResource MakerResource]
        end
      RUBY
    end
    [[1, garage::Vehicle, 1], [2, garage::Vehicle, 2], [3, garage::Maker, 1], [4, garage::Vehicle, 3]].each do |id, model, subject|
      journal.run("INSERT INTO remarks VALUES (#{id}, '#{model.polymorphic_name}', #{subject})")
    end
    @app = serve do |_|
      resource garage::RemarkResource
      resource garage::VehicleResource, at: "vehicles"
    end
  end

  def test_each_subject_is_of_its_type
    _, document = get("/remarks?include=subject.maker&sort=")
    linked = document["data"].to_h { |one| [one["id"], one["relationships"]["subject"]["data"]&.values_at("type", "id")] }
    assert_equal({ "1" => %w[cars 1], "2" => %w[trucks 2], "3" => %w[makers 1], "4" => nil }, linked)
    assert_equal [%w[cars 1], %w[makers 1], %w[trucks 2]], document["included"].map { |one| one.values_at("type", "id") }.sort
    related = %w[1 2 3 4].map { |id| get("/remarks/#{id}/subject").last["data"]&.values_at("type", "id") }
    assert_equal [%w[cars 1], %w[trucks 2], %w[makers 1], nil], related
    assert_equal({ "type" => "trucks", "id" => "2" }, get("/remarks/2/relationships/subject").last["data"])
  end

  def test_preloads_may_name_an_association_of_a_subclass
    @garage::Car.belongs_to :own_maker, class_name: @garage::Maker.name, foreign_key: :maker_id, optional: true
    vehicle = @garage::Vehicle
    served = Class.new(Castellan::Resource) do
      model vehicle
      type "vehicles"
      attribute(:maker, preloads: :own_maker) { |car| car.own_maker&.name }
    end
    assert_includes served.render(@garage::Car.where(id: 1)), '"id":"1","attributes":{"maker":null}'
  end

  def test_the_type_of_a_hidden_subject_is_not_filtered_by
    hiding = Class.new(@garage::RemarkResource) do
      belongs_to :subject, resource: %w[VehicleResource MakerResource], if: ->(viewer) { viewer == 1 }
      filter :subject_type, :subject_id
    end
    [{ "subject_type" => @garage::Maker.polymorphic_name }, { "subject_id" => "1" }].each do |filter|
      assert_raises(Castellan::BadRequest) { hiding.render(query: { "filter" => filter }, viewer: 2) }
      assert_includes hiding.render(query: { "filter" => filter }, viewer: 1), '"type":"remarks","id":"3"'
    end
  end
end

# Models of ActiveRecord whose type column does not hold names of classes.
module OwnTypeNamesContract
  include JournalRequests

  NAMES = {
    "integers" => ["integer", [1, 2], "def self.sti_class_for(kind) = module_parent.const_get({ 1 => :Meeting, 2 => :Holiday }.fetch(kind))
                                       def self.sti_name = { Meeting: 1, Holiday: 2 }[name.demodulize.to_sym]"],
    "words" => ["varchar(80)", %w[meeting holiday], "def self.find_sti_class(kind) = module_parent.const_get(kind.camelize)
                                                     def self.sti_name = name.demodulize.underscore"],
    "enum" => ["integer", [0, 1], "enum :kind, { Meeting: 0, Holiday: 1 }
                                   self.store_full_sti_class = false
                                   def self.compute_type(kind) = module_parent.const_get(kind)"]
  }.freeze

  def setup = nil

  NAMES.each do |name, (column, (meeting, holiday), methods)|
    define_method("test_a_type_column_of_#{name}") do
      table = "events_of_#{name}"
      journal.run("DROP TABLE IF EXISTS #{table}")
      journal.run("CREATE TABLE #{table} (id integer PRIMARY KEY, kind #{column}, title varchar(40))")
      values = [meeting, holiday].map { |kind| kind.is_a?(String) ? "'#{kind}'" : kind }
      journal.run("INSERT INTO #{table} VALUES (1, #{values[0]}, 'Standup'), (2, #{values[1]}, 'Easter'), (3, #{values[0]}, 'Hidden')")
      calendar = calendar(table, methods)
      @app = serve { |_| resource calendar::EventResource, at: "events" }
      _, document = get("/events?sort=-title&page[size]=2")
      assert_equal [%w[meetings 1], %w[holidays 2]], document["data"].map { |one| one.values_at("type", "id") }
      assert_equal 2, document["meta"]["total"]
      assert_equal %w[holidays 2], get("/events/2").last["data"].values_at("type", "id")
      assert_empty Castellan.verify { calendar::EventResource.render }.differences
    end
  end

  private

  def calendar(table, methods)
    Module.new.tap do |calendar|
      journal.models.send(:remove_const, :Calendar) if journal.models.const_defined?(:Calendar, false)
      journal.models.const_set(:Calendar, calendar).const_set(:Base, journal.models::Base)
      calendar.const_set(:Event, Class.new(calendar::Base))
      calendar::Event.table_name = table
      calendar::Event.inheritance_column = :kind
      calendar::Event.class_eval(methods, __FILE__, __LINE__)
      calendar.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        class Meeting < Event; end
        class Holiday < Event; end
        class EventResource < Castellan::Resource
          model Event
          types "MeetingResource", "HolidayResource"
          attributes :title
          sort :title
          page size: 10, count: true
        end
        class MeetingResource < EventResource
          model Meeting
          type "meetings"
          scope { |meetings, _| meetings.where.not(title: "Hidden") }
        end
        class HolidayResource < EventResource
          model Holiday
          type "holidays"
        end
      RUBY
    end
  end
end

%i[sqlite postgres].product([PolymorphicTypesContract, OwnTypeNamesContract]) do |database, contract|
  Object.const_set("#{contract.name.delete_suffix("Contract")}On#{database.capitalize}Test", Class.new(Minitest::Test) do
    include contract

    define_method(:journal) do
      needs :postgres if database == :postgres
      Journal.active_record(database)
    end
  end)
end
