# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "rack"
require "rack/mock_request"

# Columns of a Rails application: `normalizes`, and an enum of PostgreSQL's own with the model's names.
class NormalizedColumnsTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Subscriber < Base
    enum :state, { pending: "pending", live: "live" }
    normalizes :email, with: ->(email) { email.strip.downcase.presence }
    normalizes :site, with: ->(site) { URI.parse(site).to_s }
    normalizes :seen_at, with: ->(time) { time.change(usec: 0) }
  end

  class SubscriberResource < Castellan::Resource
    model Subscriber
    type "subscribers"
    attributes :email, :state, :seen_at
    filter :email, :state, :seen_at, :site
    sort :email, :seen_at
    page :cursor, size: 1
  end

  def setup
    needs :postgres
    Base.establish_connection(Castellan::TestServers.postgres_url)
    Base.connection.create_enum(:subscriber_state, %w[pending live])
    Base.connection.create_table(:subscribers) do |table|
      table.string :email
      table.string :site
      table.datetime :seen_at
      table.enum :state, enum_type: :subscriber_state
    end
    Subscriber.reset_column_information
    Subscriber.create!(email: " Ada@Example.com ", state: :live, seen_at: Time.utc(2026, 1, 2, 3, 4, 5.5r))
    Subscriber.create!(email: "bob@example.com", state: :pending, seen_at: Time.utc(2026, 1, 3))
  end

  def teardown = Base.remove_connection

  def test_clients_filter_by_them_as_where_does
    assert_equal %w[ada@example.com], emails("filter[email]=ADA@Example.com")
    assert_equal %w[bob@example.com], emails("filter[email][not]=ADA@example.com")
    assert_empty emails("filter[email]=%20")
    assert_equal %w[ada@example.com], emails("filter[seen_at]=2026-01-02T03:04:05.7Z")
    assert_equal %w[ada@example.com], emails("filter[state]=live")
    assert_equal 400, get("filter[state]=nothing").status
    assert_equal 400, get("filter[state][gt]=live").status
  end

  def test_a_value_that_the_model_cannot_normalize_is_400
    response = get("filter[site]=a%20b")
    assert_equal 400, response.status
    assert_equal '"a b" is no site', JSON.parse(response.body)["errors"].first["detail"]
    assert_equal 200, get("filter[site]=http://a.example/").status
  end

  def test_they_are_read_as_rows_and_pages_continue_after_them
    first = get("sort=email")
    assert_equal "2026-01-02T03:04:05.000Z", JSON.parse(first.body).dig("data", 0, "attributes", "seen_at")
    following = app.get(JSON.parse(first.body).dig("links", "next"))
    assert_equal "bob@example.com", JSON.parse(following.body).dig("data", 0, "attributes", "email")
  end

  private

  def emails(query) = JSON.parse(get(query).body).fetch("data").map { |object| object.dig("attributes", "email") }
  def get(query) = app.get("/subscribers?#{query}")
  def app = @app ||= Rack::MockRequest.new(Castellan.app { resource SubscriberResource })
end

# Sequel's plugin enum: the reader returns names, the column has numbers.
class SequelEnumColumnsTest < Minitest::Test
  DB = Sequel.sqlite(keep_reference: false)
  DB.create_table(:tickets) do
    primary_key :id
    Integer :state
    String :mark
    Integer :plain
  end

  class Ticket < Sequel::Model(DB[:tickets])
    plugin :enum
    enum :state, { open: 1, shut: 2 }, prefix: true
    enum :mark, good: "g", bad: "b"
    enum :plain, { first: 1 }, override_accessors: false
  end

  class Urgent < Ticket; end

  class TicketResource < Castellan::Resource
    model Urgent
    type "tickets"
    attributes :state, :mark, :plain
    filter :state, :mark, :plain
    writable :state, :mark, :plain
  end

  def setup
    DB[:tickets].delete
    @app = Rack::MockRequest.new(Castellan.app do
      openapi title: "Tickets", version: "1"
      resource TicketResource
    end)
  end

  def test_clients_write_and_filter_by_the_names_that_they_read
    values = { "state" => "shut", "mark" => "bad", "plain" => 1 }
    response = post(values)
    assert_equal [201, values], [response.status, JSON.parse(response.body).dig("data", "attributes")], response.body
    assert_equal [2, "b", 1], DB[:tickets].get(%i[state mark plain])
    post("state" => "open")
    { "state" => "shut", "mark" => "bad", "plain" => "1" }.each do |name, value|
      assert_equal 1, JSON.parse(@app.get("/tickets?filter[#{name}]=#{value}").body)["data"].size, name
    end
  end

  def test_other_values_are_refused
    ["other", 2, ["shut"], "first"].each { |value| assert_equal 422, post("state" => value).status, value.inspect }
    assert_equal 201, post("state" => nil).status
    assert_equal 400, @app.get("/tickets?filter[state]=2").status
  end

  def test_openapi_has_the_names
    found = JSON.parse(@app.get("/openapi.json").body).dig("components", "schemas", "tickets", "properties", "attributes", "properties")
    assert_equal [["open", "shut", nil], ["bad", "good", nil], nil], found.values_at("state", "mark", "plain").map { |one| one["enum"] }
  end

  private

  def post(values)
    @app.post("/tickets", "CONTENT_TYPE" => "application/vnd.api+json", input: JSON.generate(data: { type: "tickets", attributes: values }))
  end
end
