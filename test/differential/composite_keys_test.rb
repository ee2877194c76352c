# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/mock"
require_relative "../rows/active_record_world"
require_relative "paged_dataset"

# Scopes with a join, DISTINCT, GROUP BY or LIMIT of a model with a composite key: pages, count and order.
module CompositeKeysContract
  include ActiveRecordWorld::OwnWorld

  def receipts = world

  module World
    def self.of(base)
      base.connection.create_table(:shops) { |table| table.string(:name) }
      base.connection.create_table(:receipts, primary_key: %i[shop_id number]) do |table|
        table.integer :shop_id
        table.integer :number
        table.string :note
      end
      base.connection.create_table(:receipt_lines) { |table| table.integer(:shop_id) && table.integer(:number) }
      receipt = Class.new(base) { self.table_name = "receipts" }
      CompositeKeysContract.const_set(:"#{base.module_parent_name}Receipt", receipt)
      shop = CompositeKeysContract.const_set(:"#{base.module_parent_name}Shop", Class.new(base) { self.table_name = "shops" })
      receipt.belongs_to :shop, class_name: shop.name
      receipt
    end
  end

  LINES = "JOIN receipt_lines ON receipt_lines.shop_id = receipts.shop_id AND receipt_lines.number = receipts.number"

  def setup
    receipts.delete_all
    base.connection.execute("DELETE FROM receipt_lines")
    6.times { |index| receipts.create!(shop: shops[index % 2], number: index, note: "Note #{5 - index}") }
    receipts.all.each { |receipt| 2.times { insert_line(receipt) } }
  end

  def test_each_row_is_returned_once_in_the_order_and_limit_of_the_scope
    scopes.each do |name, scope|
      expected = scope.to_a.uniq.map { |receipt| receipt.id.join("_") }
      assert_equal [expected, expected], [scope, scope.spawn].map { |one| read(plain.render(one)) }, "#{name}, loaded and not"
      assert_equal expected.first(3), read(plain.render(scope.limit(3))), name
      assert_equal expected, (1..3).flat_map { |number| read(divided.render(scope, page: { number: number })) }, name
      assert_equal 6, JSON.parse(divided.render(scope))["meta"]["total"], name
    end
  end

  def test_limited_rows_can_be_sorted_and_found_by_id
    scope = receipts.order(:number).limit(3)
    first = scope.to_a.map { |receipt| receipt.id.join("_") }
    assert_equal first.reverse, read(divided.render(scope, sort: "note", page: { size: 9 }))
    assert_equal 3, JSON.parse(divided.render(scope))["meta"]["total"]
    last = receipts.order(:number).last.id.join("_")
    assert_equal([200, 404], [first.first, last].map { |id| plain.document(scope, id: id).status })
  end

  private

  def scopes
    { join: receipts.joins(LINES).order(:number), distinct: receipts.joins(LINES).distinct.order(:number),
      order_of_joined: receipts.joins(:shop).order("shops.name DESC, receipts.number"), eager: receipts.eager_load(:shop).order(:number),
      group: receipts.group(:shop_id, :number).order(:number) }
  end

  def base = receipts.superclass
  def shops = @shops ||= %w[Ada Alan].map { |name| receipts.reflect_on_association(:shop).klass.create!(name: name) }
  def insert_line(receipt) = base.connection.execute("INSERT INTO receipt_lines (shop_id, number) VALUES (#{receipt.id.join(", ")})")
  def read(text) = JSON.parse(text)["data"].map { |object| object["id"] }

  def plain
    model = receipts
    Class.new(Castellan::Resource) do
      model model
      type "receipts"
      attributes :note
    end
  end

  def divided
    Class.new(plain) do
      sort :note
      page size: 2, max_size: 9, count: true
    end
  end
end

class CompositeKeysOnSqliteTest < Minitest::Test
  include CompositeKeysContract
  include ActiveRecordWorld::OnSqlite
end

class CompositeKeysOnPostgresTest < Minitest::Test
  include CompositeKeysContract
  include ActiveRecordWorld::OnPostgres
end

# Rails' own convention, `primary_key: %i[shop_id id]`: `id` of such a record is the whole key, and not the column of that name.
class CompositeKeysWithIdTest < Minitest::Test
  include ActiveRecordWorld::OwnWorld
  include ActiveRecordWorld::OnSqlite

  module World
    FOREIGN = ActiveRecord.version < Gem::Version.new("7.2") ? :query_constraints : :foreign_key

    def self.of(base)
      base.connection.create_table(:orders, primary_key: %i[shop_id id]) { |table|
        table.integer :shop_id
        table.integer :id
        table.string :state
      }
      base.connection.create_table(:order_lines) { |table| table.integer(:shop_id) && table.integer(:order_id) }
      order = CompositeKeysWithIdTest.const_set(:Order, Class.new(base) { self.table_name = "orders" })
      line = CompositeKeysWithIdTest.const_set(:Line, Class.new(base) { self.table_name = "order_lines" })
      order.has_many :lines, class_name: line.name, FOREIGN => %i[shop_id order_id]
      line.belongs_to :order, class_name: order.name, FOREIGN => %i[shop_id order_id]
      [order, line]
    end
  end

  def setup
    @orders, @lines = world
    @lines.delete_all
    @orders.delete_all
    [[1, 1], [2, 1]].each { |key| @orders.create!(id: key, state: "new") }
    @line = @lines.create!(order: @orders.find([2, 1]))
  end

  def test_the_id_is_read_from_the_columns
    assert_equal(%w[1_1 2_1], data("/orders").map { |object| object["id"] })
    assert_equal [2, "2_1"], data("/orders/2_1").then { |object| [object["attributes"]["number"], object["id"]] }
  end

  def test_the_record_is_found_by_its_relationship
    assert_equal "2_1", data("/lines/#{@line.id}")["relationships"]["order"]["data"]["id"]
    assert_equal "2_1", data("/lines/#{@line.id}/order")["id"]
  end

  def test_it_is_written_and_linked
    changed = { "data" => { "type" => "orders", "id" => "1_1", "attributes" => { "state" => "sent" } } }
    assert_equal %w[1_1 sent], data("/orders/1_1", "PATCH", changed).then { |object| [object["id"], object["attributes"]["state"]] }
    linked = { "data" => { "type" => "lines", "relationships" => { "order" => { "data" => { "type" => "orders", "id" => "1_1" } } } } }
    assert_equal "1_1", data("/lines", "POST", linked)["relationships"]["order"]["data"]["id"]
  end

  def test_no_column_of_a_hidden_relationship_is_filtered_or_sorted_by
    orders = resource(@orders, "orders") { attributes :state }
    hiding = resource(@lines, "lines") do
      belongs_to :order, resource: orders, if: ->(viewer) { viewer == 1 }
      filter :shop_id, :order_id
      sort :shop_id
    end
    [{ "filter" => { "shop_id" => "2" } }, { "filter" => { "order_id" => "1" } }, { "sort" => "shop_id" }].each do |query|
      assert_raises(Castellan::BadRequest) { hiding.render(query: query, viewer: 2) }
      assert_includes hiding.render(query: query, viewer: 1), %("id":"#{@line.id}")
    end
  end

  def test_a_column_of_the_id_is_filtered_by_although_a_hidden_relationship_has_it
    @orders.belongs_to :shop, class_name: @lines.name
    lines = resource(@lines, "lines") { attributes :order_id }
    shown = resource(@orders, "orders") do
      belongs_to :shop, resource: lines, if: ->(viewer) { viewer == 1 }
      filter :shop_id
    end
    assert_includes shown.render(query: { "filter" => { "shop_id" => "2" } }, viewer: 2), '"id":"2_1"'
  end

  private

  def data(path, method = "GET", body = nil)
    @app ||= application(@orders, @lines)
    response = Rack::MockRequest.new(@app).request(method, path, input: body ? JSON.generate(body) : "",
                                                                 "CONTENT_TYPE" => "application/vnd.api+json")
    JSON.parse(response.body)["data"] || flunk(response.body)
  end

  def application(order, line)
    orders = resource(order, "orders") do
      attributes :state
      attribute(:number, columns: %i[id shop_id]) { |row| row.id * row.shop_id }
      writable :state
    end
    lines = resource(line, "lines") do
      belongs_to :order, resource: orders
      writable :order
    end
    Castellan.app { [orders, lines].each { |one| resource one } }
  end

  def resource(of, name, &block)
    Class.new(Castellan::Resource) do
      model of
      type name
      class_exec(&block)
    end
  end
end

# The same for a model of Sequel.
class CompositeKeysOfSequelTest < Minitest::Test
  include PagedDataset

  def create
    @database.create_table(:receipts) {
      Integer :shop_id
      Integer :number
      String :note
      primary_key %i[shop_id number]
    }
    @database.create_table(:lines) {
      Integer :shop
      Integer :receipt
      Integer :place
    }
    4.times do |index|
      @database[:receipts].insert(shop_id: index % 2, number: index, note: "Note #{3 - index}")
      2.times { @database[:lines].insert(shop: index % 2, receipt: index, place: -index) }
    end
  end

  def model = Class.new(Sequel::Model(@database[:receipts])) { set_primary_key %i[shop_id number] }

  def test_each_row_is_returned_once
    joined = @model.join(:lines, shop: :shop_id, receipt: :number).select_all(:receipts)
    assert_equal %w[0_0 1_1 0_2 1_3], pages(joined.order(Sequel[:receipts][:number]), 2)
    assert_equal %w[1_3 0_2 1_1 0_0], pages(joined.order(Sequel[:lines][:place]), 2)
    assert_equal 4, JSON.parse(@resource.render(joined))["meta"]["total"]
  end

  def test_limited_rows_can_be_sorted
    assert_equal %w[0_2 1_1], ids(@model.order(:number).limit(2, 1), sort: "note")
  end
end
