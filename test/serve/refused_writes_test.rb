# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "rack"
require "rack/mock_request"

# Writes that a model, a related record or the database refuses have a status and a pointer, and leave nothing half-written.
module RefusedWritesContract
  OPERATIONS = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'

  def test_a_record_is_created_with_its_to_one_relationship
    response = send_document("POST", "/owners", type: "owners", attributes: { name: "Ada" },
                                                relationships: { card: { data: { type: "cards", id: "1" } } })
    assert_equal [201, "1"], [response.status, JSON.parse(response.body).dig("data", "relationships", "card", "data", "id")]
    assert_equal 201, send_document("POST", "/owners", type: "owners", relationships: { card: { data: nil } }).status
  end

  def test_an_invalid_member_of_a_relationship_is_named_by_the_relationship
    linkage = [{ type: "notes", id: "1" }]
    response = send_document("PATCH", "/owners/1", type: "owners", id: "1", relationships: { notes: { data: linkage } })
    assert_equal [422, "/data/relationships/notes"], [response.status, error(response).dig("source", "pointer")]
    assert_match(/\Anotes: name /i, error(response)["detail"])
    response = send_document("PATCH", "/owners/1/relationships/notes", linkage)
    assert_equal [422, "/data"], [response.status, error(response).dig("source", "pointer")]
    assert_match(/\Anotes: name /i, error(response)["detail"])
  end

  def test_an_invalid_has_one_is_not_named_by_a_member_of_the_owner
    response = send_document("PATCH", "/owners/1", type: "owners", id: "1", relationships: { card: { data: { type: "cards", id: "2" } } })
    assert_equal [422, "/data/relationships/card"], [response.status, error(response).dig("source", "pointer")]
    response = send_document("POST", "/owners", type: "owners", relationships: { card: { data: { type: "cards", id: "2" } } })
    assert_equal [422, "/data/relationships/card"], [response.status, error(response).dig("source", "pointer")]
  end

  def test_a_rollback_of_the_application_is_no_success
    assert_equal 422, send_document("POST", "/owners", type: "owners", attributes: { name: "rollback" }).status
    response = send_document("DELETE", "/owners/1", nil)
    assert_equal 422, response.status
    assert_equal 200, Rack::MockRequest.new(app).get("/owners/1").status
  end

  def test_each_error_of_a_batch_names_its_operation
    stale = { op: "update", data: { type: "owners", id: "1", attributes: { name: "x", lock_version: 7 } } }
    body = JSON.generate("atomic:operations": [{ op: "add", data: { type: "owners", attributes: { name: "b" } } }, stale])
    response = Rack::MockRequest.new(app).post("/operations", input: body, "CONTENT_TYPE" => OPERATIONS)
    assert_equal [409, "/atomic:operations/1"], [response.status, error(response).dig("source", "pointer")]
  end

  private

  def send_document(method, path, data)
    body = JSON.generate(data: data) if data
    Rack::MockRequest.new(app).request(method, path, **{ input: body, "CONTENT_TYPE" => ("application/vnd.api+json" if body) }.compact)
  end

  def error(response) = JSON.parse(response.body).fetch("errors").first

  # @return [#call] an application with the models Owner, Card and Note of the module
  def build(models)
    parts = %w[Card Note].to_h { |name| [name, Class.new(Castellan::Resource) { model models.const_get(name) }] }
    parts.each { |name, part| part.type("#{name.downcase}s") && part.attributes(:name) }
    owners = Class.new(Castellan::Resource) do
      model models::Owner
      type "owners"
      attributes :name, :lock_version
      has_one :card, resource: parts["Card"]
      has_many :notes, resource: parts["Note"]
      writable :name, :lock_version, :card, :notes
      deletable
      define_method(:create) { |values, viewer| super(values, viewer).tap { models.roll_back if values[:name] == "rollback" } }
      define_method(:delete) { |record, viewer| super(record, viewer) && models.roll_back }
    end
    Castellan.app do
      resource owners
      parts.each_value { |part| resource part }
      operations
    end
  end
end

class ActiveRecordRefusedWritesTest < Minitest::Test
  include RefusedWritesContract

  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Owner < Base
    has_one :card, class_name: "ActiveRecordRefusedWritesTest::Card"
    has_many :notes, class_name: "ActiveRecordRefusedWritesTest::Note"
  end

  class Card < Base
    validates :name, presence: true
  end

  class Note < Base
    validates :name, presence: true
  end

  def self.roll_back = raise(ActiveRecord::Rollback)

  def setup
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:owners) { |t| [t.string(:name), t.integer(:lock_version, default: 0, null: false)] }
    %i[cards notes].each { |name| Base.connection.create_table(name) { |t| [t.string(:name), t.integer(:owner_id)] } }
    [Owner, Card, Note].each(&:reset_column_information)
    Owner.create!(name: "Grace")
    Card.create!(name: "first")
    [Card, Note].each { |model| model.new.save!(validate: false) }
  end

  def teardown
    Base.remove_connection
  end

  def app = @app ||= build(self.class)

  class Twice < Base
    self.table_name = "cards"
    before_destroy { self.class.where(id: id).delete_all }
  end

  # As `Timeout` does: after the database has begun, or before the caller has the transaction.
  def test_an_interrupted_begin_leaves_no_transaction_open
    %i[begin_db_transaction begin_transaction].each do |interrupted|
      setup
      connection = Base.connection
      driver = connection.instance_variable_get(:@raw_connection)
      connection.define_singleton_method(interrupted) { |**options| super(**options).then { throw :interrupted } }
      catch(:interrupted) { send_document("PATCH", "/owners/1", type: "owners", id: "1", attributes: { name: "x" }) }
      assert driver.closed? || !driver.transaction_active?, interrupted
      assert_equal 0, connection.open_transactions, interrupted
    end
  end

  # An error of the gem mysql2; trilogy's has an `error_code`.
  class MySQLError < StandardError
    attr_reader :error_number

    def self.name = "Mysql2::Error"

    def initialize(message, number)
      super(message)
      @error_number = number
    end
  end

  def test_a_value_that_mysql_refuses_is_an_error_of_the_client
    { 1265 => "Data truncated for column 'name' at row 1", 1366 => "Incorrect value: 'column `x`' for column `a-b`.`owners`.`name`" }
      .each { |number, message| assert_equal [422, "/data/attributes/name"], mysql(message, number), message }
    assert_equal [422, nil], mysql("CONSTRAINT `short` failed for `d`.`owners`", 4025)
    assert_equal [503, nil], mysql("The MySQL server is running with the --read-only option", 1290)
    assert_nil mysql("Unknown column 'name' in 'field list'", 1054)
  end

  # A callback that changes the connection ends the transaction of the caller, too.
  def test_a_lost_transaction_of_the_caller_does_not_replace_the_error
    Base.connection.begin_transaction(_lazy: false)
    models = Castellan::Write::ActiveRecordModels.new(Owner)
    error = assert_raises(StandardError) { models.transaction { Base.connection.disconnect! || raise(ArgumentError, "the reason") } }
    assert_equal "the reason", error.message
  end

  def test_a_transaction_that_a_callback_leaves_open_is_rolled_back
    models = Castellan::Write::ActiveRecordModels.new(Owner)
    assert_raises(ArgumentError) { models.transaction { Base.connection.begin_transaction && raise(ArgumentError) } }
    assert_equal 0, Base.connection.open_transactions
  end

  def test_a_record_whose_row_a_callback_has_deleted_is_deleted
    twice = Class.new(Castellan::Resource) { [model(Twice), type("twice"), deletable] }
    assert_equal 204, Rack::MockRequest.new(Castellan.app { resource twice }).delete("/twice/1").status
    assert_equal [2], Card.ids
  end

  module ByDefault
    Card = ActiveRecordRefusedWritesTest::Card
    Note = Class.new(Base) do
      self.table_name = "notes"
      self.strict_loading_by_default = true
    end
    Owner = Class.new(Base) do
      self.table_name = "owners"
      self.strict_loading_by_default = true
      has_one :card, class_name: "ActiveRecordRefusedWritesTest::Card", foreign_key: :owner_id
      has_many :notes, class_name: "ActiveRecordRefusedWritesTest::ByDefault::Note", foreign_key: :owner_id
    end
  end

  module ByAssociation
    Card = ActiveRecordRefusedWritesTest::Card
    Note = ByDefault::Note
    Owner = Class.new(Base) do
      self.table_name = "owners"
      has_one :card, class_name: "ActiveRecordRefusedWritesTest::Card", foreign_key: :owner_id, strict_loading: true
      has_many :notes, class_name: "ActiveRecordRefusedWritesTest::ByDefault::Note", foreign_key: :owner_id, strict_loading: true
    end
  end

  def test_relationships_of_models_that_forbid_lazy_loading_are_written
    [ByDefault, ByAssociation].each do |models|
      [models::Owner, models::Note].each(&:reset_column_information)
      @app = build(models)
      { "notes" => [{ type: "notes", id: "1" }], "card" => { type: "cards", id: "1" } }.each do |name, linkage|
        document = { type: "owners", id: "1", attributes: { name: "Ada" }, relationships: { name => { data: linkage } } }
        assert_equal 200, send_document("PATCH", "/owners/1", document).status, name
        assert_equal 204, send_document("PATCH", "/owners/1/relationships/#{name}", linkage).status, name
      end
      %w[DELETE POST].each do |method|
        assert_equal 204, send_document(method, "/owners/1/relationships/notes", [{ type: "notes", id: "1" }]).status
      end
      assert_equal [1, 1], [models::Note.find(1).owner_id, models::Card.find(1).owner_id]
    end
  end

  class Account < Base
    self.table_name = "owners"
    attr_accessor :secret, :secret_confirmation

    has_many :notes, class_name: "ActiveRecordRefusedWritesTest::Note", foreign_key: :owner_id
    has_one :card, class_name: "ActiveRecordRefusedWritesTest::Card", foreign_key: :owner_id
    accepts_nested_attributes_for :notes, :card, limit: 2
    default_scope { where.not(name: "gone") }
    validates :secret, confirmation: true
  end

  def test_an_error_of_a_writable_name_without_an_attribute_has_its_pointer
    assert_equal [422, "/data/attributes/secret_confirmation"], account(secret: "a", secret_confirmation: "b")
  end

  def test_nested_attributes_that_do_not_fit_are_422
    note = { name: "n" }
    wrong = ["x", 1, [1], { "0": 1 }, [{ nope: 1 }], [{ id: 99, name: "x" }], { a: [] }, [note, note, note]]
    wrong.each { |value| assert_equal [422, "/data/attributes/notes_attributes"], account(notes_attributes: value), value.inspect }
    [[note], { nope: 1 }].each do |value|
      assert_equal [422, "/data/attributes/card_attributes"], account(card_attributes: value), value.inspect
    end
    assert_equal 1, Account.count
    [[note], { "0": note }, nil].each { |value| assert_equal 201, account({ notes_attributes: value }.compact).first }
    assert_equal 2, Note.where(name: "n").count
  end

  def test_ids_of_records_that_do_not_exist_are_422
    [[99], ["x"], 99, { a: 1 }].each { |ids| assert_equal [422, "/data/attributes/note_ids"], account(note_ids: ids), ids.inspect }
    assert_equal [422, "/data/attributes/note_ids"], account(note_ids: [99], secret: "a", secret_confirmation: "a")
    assert_equal 1, Account.count
    note = Note.create!(name: "n")
    assert_equal 201, account(note_ids: [note.id]).first
    assert_equal Account.last.id, note.reload.owner_id
  end

  def test_a_validation_error_that_a_resource_adds_is_422
    accounts = Class.new(Castellan::Resource) do
      [model(Account), type("accounts"), deletable]
      def delete(account, _viewer)
        account.errors.add(:base, "has descendants")
        raise ActiveRecord::RecordInvalid, account
      end
    end
    response = Rack::MockRequest.new(Castellan.app { resource accounts }).delete("/accounts/#{Account.first.id}")
    assert_equal [422, "has descendants", 1], [response.status, JSON.parse(response.body).dig("errors", 0, "detail"), Account.count]
  end

  def test_a_record_that_the_default_scope_hides_is_not_created
    assert_equal [403, nil], account(name: "gone")
    operation = { op: "add", data: { type: "accounts", attributes: { name: "gone" } } }
    assert_equal 403, ask_accounts(:post, "/operations", OPERATIONS, { "atomic:operations": [operation] }).status
    assert_equal 1, Account.unscoped.count
  end

  def test_a_record_is_not_changed_so_that_the_default_scope_hides_it
    id = Account.first.id.to_s
    data = { type: "accounts", id: id, attributes: { name: "gone" } }
    assert_equal 403, ask_accounts(:patch, "/accounts/#{id}", "application/vnd.api+json", data: data).status
    operations = { "atomic:operations": [{ op: "update", data: data }] }
    assert_equal 403, ask_accounts(:post, "/operations", OPERATIONS, operations).status
    assert_equal [id.to_i], Account.ids
  end

  def test_a_relationship_is_not_changed_so_that_the_default_scope_hides_its_record
    kept = Class.new(Base) do
      self.table_name = Note.table_name
      default_scope { where.not(owner_id: nil) }
      belongs_to :owner, anonymous_class: Owner, optional: true
      def self.name = "Kept"
    end
    id = kept.create!(name: "kept", owner_id: 1).id.to_s
    owners = Class.new(Castellan::Resource) { [model(Owner), type("owners")] }
    notes = Class.new(Castellan::Resource) { [model(kept), type("notes"), belongs_to(:owner, resource: owners), writable(:owner)] }
    client = Rack::MockRequest.new(Castellan.app { [resource(notes), operations] })
    fields = { input: JSON.generate(data: nil), "CONTENT_TYPE" => "application/vnd.api+json" }
    assert_equal 403, client.patch("/notes/#{id}/relationships/owner", **fields).status
    operation = { op: "update", ref: { type: "notes", id: id, relationship: "owner" }, data: nil }
    fields = { input: JSON.generate("atomic:operations": [operation]), "CONTENT_TYPE" => OPERATIONS }
    assert_equal [403, [1]], [client.post("/operations", **fields).status, kept.unscoped.where(id: id).pluck(:owner_id)]
  end

  private

  def account(values)
    response = ask_accounts(:post, "/accounts", "application/vnd.api+json", data: { type: "accounts", attributes: { name: "a", **values } })
    [response.status, JSON.parse(response.body).dig("errors", 0, "source", "pointer")]
  end

  def ask_accounts(method, path, media_type, body)
    @accounts ||= begin
      accounts = Class.new(Castellan::Resource) do
        model Account
        type "accounts"
        attributes :name
        writable :name, :secret, :secret_confirmation, :note_ids, :notes_attributes, :card_attributes
      end
      Castellan.app { [resource(accounts), operations] }
    end
    Rack::MockRequest.new(@accounts).request(method.to_s.upcase, path, input: JSON.generate(body), "CONTENT_TYPE" => media_type)
  end

  # @return [Array(Integer, String), nil] status and pointer of ActiveRecord's error for one of MySQL
  def mysql(message, number)
    begin
      raise MySQLError.new(message, number)
    rescue MySQLError
      raise ActiveRecord::StatementInvalid, message
    end
  rescue ActiveRecord::StatementInvalid => error
    errors = Castellan::Write::DatabaseError.new(Castellan::Write::ActiveRecordModels.new(Owner), { "name" => "/data/attributes/name" })
    errors.translate(error)&.then { |found| [found.status, found.pointer] }
  end
end

# Constraints of several columns, and of the rows at the other end.
class ConstraintsOfOthersTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Shop < Base; end
  class Offer < Base; end

  class ShopResource < Castellan::Resource
    model Shop
    type "shops"
    attributes :name
    has_many :offers, resource: "ConstraintsOfOthersTest::OfferResource"
    writable :name, :offers
  end

  class OfferResource < Castellan::Resource
    model Offer
    type "offers"
    id :slug
    attributes :slug
    belongs_to :shop, resource: ShopResource
    writable :slug, :shop
  end

  def setup
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:shops) { |t| t.string(:name) }
    Base.connection.create_table(:offers) { |t| [t.string(:slug), t.integer(:shop_id, null: false)] }
    Base.connection.add_index(:offers, %i[shop_id slug], unique: true)
    Shop.has_many :offers, class_name: "ConstraintsOfOthersTest::Offer"
    Offer.belongs_to :shop, class_name: "ConstraintsOfOthersTest::Shop"
    shop = Shop.create!
    %w[a b].each { |slug| Offer.create!(slug: slug, shop: shop) }
  end

  def teardown
    Base.remove_connection
  end

  def test_a_unique_index_with_an_owner_names_the_member_that_is_written
    shop = { shop: { data: { type: "shops", id: "1" } } }
    wanted = [409, "/data/attributes/slug", "slug is taken"]
    assert_equal wanted, refusal("PATCH", "/offers/a", type: "offers", id: "a", attributes: { slug: "b" })
    assert_equal wanted, refusal("POST", "/offers", type: "offers", attributes: { slug: "b" }, relationships: shop)
  end

  def test_a_record_that_needs_its_owner_does_not_leave_it
    text = "offers: a column that the database requires would be empty"
    assert_equal [422, "/data", text], refusal("DELETE", "/shops/1/relationships/offers", [{ type: "offers", id: "a" }])
    assert_equal [422, "/data/relationships/offers", text],
                 refusal("PATCH", "/shops/1", type: "shops", id: "1", relationships: { offers: { data: [] } })
    assert_equal 2, Offer.count
  end

  def test_the_location_of_an_id_with_reserved_characters_leads_to_it
    shop = { shop: { data: { type: "shops", id: "1" } } }
    response = send_data("POST", "/offers", type: "offers", attributes: { slug: "50%/ä? b" }, relationships: shop)
    assert_equal [201, "/offers/50%25%2F%C3%A4%3F%20b"], [response.status, response["location"]]
    assert_equal 200, app.get(response["location"]).status
  end

  private

  def app = @app ||= Rack::MockRequest.new(Castellan.app { [ShopResource, OfferResource].each { |one| resource one } })

  def send_data(method, path, data)
    app.request(method, path, :input => JSON.generate(data: data), "CONTENT_TYPE" => "application/vnd.api+json")
  end

  def refusal(...)
    response = send_data(...)
    error = JSON.parse(response.body)["errors"].first
    [response.status, error.dig("source", "pointer"), error["detail"]]
  end
end

class SequelRefusedWritesTest < Minitest::Test
  include RefusedWritesContract

  def setup
    database = Sequel.sqlite
    database.create_table(:owners) { [primary_key(:id), String(:name), Integer(:lock_version, default: 0, null: false)] }
    database.run("ALTER TABLE owners ADD COLUMN loud TEXT GENERATED ALWAYS AS (upper(name)) VIRTUAL")
    %i[cards notes].each { |name| database.create_table(name) { [primary_key(:id), String(:name), Integer(:owner_id)] } }
    @models = models(database)
    database[:owners].insert(name: "Grace")
    database[:cards].insert(name: "first")
    %i[cards notes].each { |name| database[name].insert(name: nil) }
  end

  def app = @app ||= build(@models)

  def test_a_table_with_a_generated_column_is_written
    response = send_document("PATCH", "/owners/1", type: "owners", id: "1", attributes: { name: "Ada" })
    assert_equal [200, "ADA", 1], [response.status, *@models::Owner[1].values.values_at(:loud, :lock_version)]
    assert_equal 200, send_document("PATCH", "/owners/1", type: "owners", id: "1", attributes: { name: "Ada" }).status
  end

  def test_nested_attributes_that_do_not_fit_are_422
    note = { name: "n" }
    wrong = ["x", 1, nil, [1], { "0": 1 }, [{ nope: 1 }], [{ id: 99, name: "x" }], { a: [] }, [note, note, note]]
    wrong.each { |value| assert_equal [422, "/data/attributes/notes_attributes"], nested(notes_attributes: value), value.inspect }
    [[note], { nope: 1 }].each do |value|
      assert_equal [422, "/data/attributes/card_attributes"], nested(card_attributes: value), value.inspect
    end
    assert_equal [1, 0], [@models::Owner.count, @models::Note.where(name: "n").count]
    [[note], { "0": note }].each { |value| assert_equal 201, nested(notes_attributes: value).first }
    assert_equal 201, nested(card_attributes: note).first
    assert_equal [2, 1], [@models::Note, @models::Card].map { |model| model.where(name: "n").exclude(owner_id: nil).count }
  end

  private

  def nested(values)
    @models::Owner.plugin :nested_attributes
    @models::Owner.nested_attributes :notes, :card, limit: 2
    owners = resource(@models::Owner)
    @nested ||= Castellan.app { resource owners }
    body = JSON.generate(data: { type: "owners", attributes: { name: "a", **values } })
    response = Rack::MockRequest.new(@nested).post("/owners", input: body, "CONTENT_TYPE" => "application/vnd.api+json")
    [response.status, JSON.parse(response.body).dig("errors", 0, "source", "pointer")]
  end

  def resource(model)
    Class.new(Castellan::Resource) do
      model model
      type "owners"
      attributes :name
      writable :name, :notes_attributes, :card_attributes
    end
  end

  def models(database)
    models = Module.new { def self.roll_back = raise(Sequel::Rollback) }
    %w[Card Note].each do |name|
      part = models.const_set(name, Class.new(Sequel::Model(database[:"#{name.downcase}s"])))
      part.define_method(:validate) { errors.add(:name, "is missing") unless self.name }
    end
    models.const_set(:Owner, Class.new(Sequel::Model(database[:owners])) do
      plugin :optimistic_locking
      one_to_one :card, class: models::Card, key: :owner_id
      one_to_many :notes, class: models::Note, key: :owner_id
    end)
    models
  end
end

# What PostgreSQL refuses without naming the column.
class PostgresRefusedWritesTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Event < Base; end

  def setup
    needs :postgres
    @url = Castellan::TestServers.postgres_url
    Base.establish_connection(@url)
    Base.connection.execute(<<~SQL)
      CREATE TYPE mood AS ENUM ('sad', 'ok');
      CREATE TABLE events (id serial PRIMARY KEY, name varchar(5), at timestamptz, mood mood, fee numeric(5, 2));
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.name = 'bad' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse();
    SQL
    Event.reset_column_information
  end

  def teardown
    Base.remove_connection
  end

  def test_what_postgresql_refuses_is_422_and_named_if_possible
    wanted = [[{ name: "bad" }, nil, "the record is refused by the database"],
              [{ name: "longer", mood: "ok" }, "/data/attributes/name", "name is refused by the database"],
              [{ name: "short", mood: "odd" }, "/data/attributes/mood", "mood is refused by the database"],
              [{ name: "short", fee: 1_000 }, "/data/attributes/fee", "fee is refused by the database"],
              [{ name: "short", fee: "-1000.5" }, "/data/attributes/fee", "fee is refused by the database"],
              [{ at: "2026-02-30" }, "/data/attributes/at",
               "at must be a string with a time, such as \"2026-01-31T12:00:00Z\", got \"2026-02-30\""]]
    wanted.each { |values, *rest| assert_equal [422, *rest], post(values), values.inspect }
    assert_equal 0, Event.count
    assert_equal 201, post({ at: "2026-02-28T01:00:00+02:00", name: "five5", fee: "999.99" }).first
  end

  # Castellan closes the connection if the server does not answer after an interrupt.
  def test_a_connection_that_was_closed_in_a_write_is_not_used_again
    post({ name: "one" })
    Event.before_create { throw :interrupted if name == "lost" && Base.connection.instance_variable_get(:@raw_connection).finish.nil? }
    catch(:interrupted) { post({ name: "lost" }) }
    assert_equal 1, Event.count
  end

  def test_a_number_that_sequel_cannot_write_is_named
    event = Class.new(Sequel::Model(Sequel.connect(@url)[:events]))
    @app = app(event)
    assert_equal [422, "/data/attributes/fee", "fee is refused by the database"], post({ name: "short", fee: 1_000 })
    assert_equal 201, post({ fee: 999 }).first
  ensure
    event&.db&.disconnect
  end

  private

  def post(values)
    @app ||= app(Event)
    body = JSON.generate(data: { type: "events", attributes: values })
    response = Rack::MockRequest.new(@app).post("/events", input: body, "CONTENT_TYPE" => "application/vnd.api+json")
    error = JSON.parse(response.body).fetch("errors", [{}]).first
    [response.status, error.dig("source", "pointer"), error["detail"]]
  end

  def app(event)
    events = Class.new(Castellan::Resource) do
      model event
      type "events"
      attributes :name, :at, :mood, :fee
      writable :name, :at, :mood, :fee
    end
    Castellan.app { resource events }
  end
end

# Policies, views and triggers of PostgreSQL, for a role that they restrict.
module RestrictedWritesContract
  SCHEMA = <<~SQL
    DO $$ BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'letters_writer') THEN CREATE ROLE letters_writer LOGIN; END IF;
    END $$;
    CREATE TABLE letters (id serial PRIMARY KEY, title text, owner text, price money, days tstzrange, data jsonb);
    CREATE INDEX ON letters (title);
    CREATE VIEW shorts AS SELECT id, title FROM letters WHERE length(title) < 4 WITH CHECK OPTION;
    CREATE TABLE closed (id serial PRIMARY KEY, title text);
    CREATE FUNCTION restrict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.title = 'drop' THEN RETURN NULL; END IF;
      IF NEW.title = 'used' THEN RAISE restrict_violation; END IF;
      IF NEW.title = 'privilege' THEN RAISE insufficient_privilege; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER restrict BEFORE INSERT OR UPDATE ON letters FOR EACH ROW EXECUTE FUNCTION restrict();
    INSERT INTO letters (title, owner) VALUES ('first', 'me');
    ALTER TABLE letters ENABLE ROW LEVEL SECURITY;
    CREATE POLICY seen ON letters FOR SELECT USING (true);
    CREATE POLICY made ON letters FOR INSERT WITH CHECK (owner IS DISTINCT FROM 'other');
    CREATE POLICY changed ON letters FOR UPDATE USING (true) WITH CHECK (owner IS DISTINCT FROM 'other');
    GRANT ALL ON letters, letters_id_seq, shorts TO letters_writer;
    GRANT SELECT ON closed TO letters_writer;
  SQL
  LONG = Random.new(1).bytes(9_000).unpack1("H*")

  def test_row_level_security_is_403_and_writes_nothing
    assert_equal [403, nil], send_document("POST", "letters", { title: "new", owner: "other" })
    assert_equal [403, nil], send_document("PATCH", "letters", { title: "new", owner: "other" })
    assert_equal [403, nil], send_document("POST", "letters", { title: "privilege" })
    assert_equal [%w[first me]], letters
  end

  def test_a_delete_that_no_policy_allows_is_not_204
    assert_includes [409, 422], Rack::MockRequest.new(app).delete("/letters/1").status
    assert_equal [%w[first me]], letters
  end

  def test_a_write_that_a_trigger_drops_is_no_success
    assert_equal [422, "/data"], send_document("POST", "letters", { title: "drop" })
    assert_includes [409, 422], send_document("PATCH", "letters", { title: "drop" }).first
    assert_equal [%w[first me]], letters
  end

  def test_what_an_index_a_view_or_a_trigger_refuses_is_no_500
    assert_equal [422, nil], send_document("POST", "letters", { title: LONG })
    assert_equal [422, nil], send_document("POST", "shorts", { title: "longer" })
    assert_equal [409, nil], send_document("POST", "letters", { title: "used" })
    assert_equal [%w[first me]], letters
  end

  def test_a_missing_privilege_is_the_applications_mistake
    assert_raises(ActiveRecord::StatementInvalid, Sequel::DatabaseError) { send_document("POST", "closed", { title: "a" }) }
  end

  def test_nonsense_is_neither_money_nor_a_range
    assert_equal [422, "/data/attributes/price"], send_document("PATCH", "letters", { price: "x" })
    ["[x,y]", "x", "[2026-01-01,z)", "[2026-01-02,2026-01-01)"].each do |range|
      assert_equal [422, "/data/attributes/days"], send_document("PATCH", "letters", { days: range }), range
    end
    ['["2026-01-01 00:00:00+00",infinity)', "[2026-01-01T00:00:00.000Z,]", "[2026-01-01 00:00:00 UTC,)", "(,)"].each do |range|
      assert_equal [200, nil], send_document("PATCH", "letters", { days: range }), range
    end
    assert_equal [200, nil], send_document("PATCH", "letters", { price: "1.5" })
  end

  def test_a_json_column_stores_any_value
    ["text", "{}", "null", 7, 1.5, true, false, [], { "a" => nil }].each do |value|
      assert_equal [200, nil], send_document("PATCH", "letters", { data: value }), value.inspect
      assert_equal [200, nil], send_document("PATCH", "letters", { title: "next" }), value.inspect
      body = Rack::MockRequest.new(app).get("/letters/1").body
      assert_equal [value], [JSON.parse(body).dig("data", "attributes", "data")], value.inspect
    end
  end

  private

  def url = @url ||= Castellan::TestServers.postgres_url
  def writer_url = url.sub("postgres@", "letters_writer@")

  def send_document(method, type, attributes)
    id = { id: "1" } if method == "PATCH"
    body = JSON.generate(data: { type: type, **id.to_h, attributes: attributes })
    path = ["", type, *id&.values].join("/")
    response = Rack::MockRequest.new(app).request(method, path, input: body, "CONTENT_TYPE" => "application/vnd.api+json")
    [response.status, JSON.parse(response.body).dig("errors", 0, "source", "pointer")]
  end

  def letters
    data = JSON.parse(Rack::MockRequest.new(app).get("/letters").body)["data"]
    data.map { |letter| letter["attributes"].values_at("title", "owner") }
  end

  def build(models)
    letters, *others = models
    letters = Class.new(Castellan::Resource) do
      model letters
      type "letters"
      attributes :title, :owner, :price, :days, :data
      writable :title, :owner, :price, :days, :data
      deletable
    end
    others = %w[shorts closed].zip(others).map do |name, table|
      Class.new(Castellan::Resource) { [model(table), type(name), attributes(:title), writable(:title)] }
    end
    Castellan.app { [letters, *others].each { |one| resource one } }
  end
end

class ActiveRecordRestrictedWritesTest < Minitest::Test
  include RestrictedWritesContract

  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Letter < Base; end

  class Short < Base
    self.primary_key = "id"
  end

  class Closed < Base
    self.table_name = "closed"
  end

  def setup
    needs :postgres
    Base.establish_connection(url)
    Base.connection.execute(SCHEMA)
    Base.establish_connection(writer_url)
    [Letter, Short, Closed].each(&:reset_column_information)
  end

  def teardown
    Base.remove_connection
  end

  def app = @app ||= build([Letter, Short, Closed])

  def test_money_is_taken_as_postgresql_writes_it
    { "$1,234.50" => 1234.5, "-$2.55" => -2.55, "($1.00)" => -1, "1.234,50" => 1234.5, "1.500" => 1.5 }.each do |text, value|
      assert_equal [200, nil], send_document("PATCH", "letters", { price: text })
      assert_equal value, Letter.find(1).price.to_f, text
    end
    ["$12", "12,5", "x1.50"].each { |text| assert_equal 422, send_document("PATCH", "letters", { price: text }).first, text }
  end
end

class SequelRestrictedWritesTest < Minitest::Test
  include RestrictedWritesContract

  def setup
    needs :postgres
    Sequel.connect(url) { |database| database.run(SCHEMA) }
    @database = Sequel.connect(writer_url)
    @database.extension(:pg_json)
  end

  def teardown
    @database&.disconnect
  end

  def app
    @app ||= build(%i[letters shorts closed].map { |table|
      Class.new(Sequel::Model(@database[table])) { set_primary_key :id }
    })
  end
end

# PostgreSQL names the same columns if a key leads nowhere and if others still refer to it.
class ReferencedKeysTest < Minitest::Test
  def setup
    needs :postgres
    @database = Sequel.connect(Castellan::TestServers.postgres_url)
    @database.run("CREATE TABLE shelves (id serial PRIMARY KEY, code text UNIQUE);
                   CREATE TABLE books (id serial PRIMARY KEY, code text REFERENCES shelves (code));
                   INSERT INTO shelves (code) VALUES ('a'); INSERT INTO books (code) VALUES ('a')")
  end

  def teardown = @database&.disconnect

  def test_only_a_key_that_leads_nowhere_is_pointed_at
    assert_equal [409, "code refers to a record that does not exist", "/data/attributes/code"], refused("books", "z")
    assert_equal [409, "the record is used by others, or names one that does not exist", nil], refused("shelves", "z")
  end

  private

  def refused(type, code)
    resource = resource_of(type)
    response = Rack::MockRequest.new(Castellan.app { resource(resource) }).patch(
      "/#{type}/1", "CONTENT_TYPE" => "application/vnd.api+json",
                    input: JSON.generate(data: { type: type, id: "1", attributes: { code: code } })
    )
    JSON.parse(response.body)["errors"].first.then { |error| [response.status, error["detail"], error.dig("source", "pointer")] }
  end

  def resource_of(type)
    model = Class.new(Sequel::Model(@database[type.to_sym]))
    Class.new(Castellan::Resource) do
      model model
      type type
      attributes :code
      writable :code
    end
  end
end
