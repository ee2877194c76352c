# frozen_string_literal: true

require "test_helper"
require "sequel"
require "rack"
require "rack/mock_request"

# A write through a Sequel model leaves the columns alone that it does not change.
class ChangedColumnsTest < Minitest::Test
  PRECISE = '{"n": 0.12345678901234567890123}'

  def test_a_column_that_a_hook_or_a_trigger_counts_is_not_overwritten
    build(Sequel.sqlite)
    remarks = ->(*ids) { ids.map { |id| { type: "remarks", id: id.to_s } } }
    changed = send_data("PATCH", "/items/1", type: "items", id: "1", relationships: { remarks: { data: remarks.call(1) } })
    assert_equal [200, 1], [changed.status, JSON.parse(changed.body).dig("data", "attributes", "remarks_count")]
    assert_equal 204, send_data("POST", "/items/1/relationships/remarks", remarks.call(2, 3)).status
    assert_equal 3, @database[:items].get(:remarks_count)
  end

  def test_a_record_can_be_its_own_member
    build(Sequel.sqlite)
    assert_equal 204, send_data("PATCH", "/items/1/relationships/parts", [{ type: "items", id: "1" }]).status
    assert_equal 1, @database[:items].get(:whole_id)
  end

  def test_json_of_another_column_keeps_its_digits
    needs :postgres
    build(Sequel.connect(Castellan::TestServers.postgres_url).extension(:pg_json), :jsonb)
    assert_equal 200, send_data("PATCH", "/items/1", type: "items", id: "1", attributes: { title: "b" }).status
    assert_equal ["b", PRECISE], @database[:items].get([:title, Sequel.cast(:data, String).as(:text)])
  end

  def teardown
    @database&.disconnect
    Sequel.synchronize { Sequel::DATABASES.delete(@database) }
  end

  private

  def build(database, json = :text)
    @database = database
    database.create_table(:items) do
      [primary_key(:id), String(:title), Integer(:whole_id), Integer(:remarks_count, default: 0), column(:data, json)]
    end
    database.create_table(:remarks) { [primary_key(:id), Integer(:item_id)] }
    database[:items].insert(title: "a", data: PRECISE)
    3.times { database[:remarks].insert(item_id: nil) }
    items = resource(*models(database))
    @app = Castellan.app { items.each { |one| resource one } }
  end

  def models(database)
    item = Class.new(Sequel::Model(database[:items]))
    remark = Class.new(Sequel::Model(database[:remarks])) do
      define_method(:after_save) do
        super()
        item.where(id: item_id).update(remarks_count: self.class.where(item_id: item_id).count)
      end
    end
    item.one_to_many(:remarks, class: remark, key: :item_id)
    item.one_to_many(:parts, class: item, key: :whole_id)
    [item, remark]
  end

  def resource(item, remark)
    remarks = Class.new(Castellan::Resource) { [model(remark), type("remarks")] }
    items = Class.new(Castellan::Resource) do
      model item
      type "items"
      attributes :title, :remarks_count
      has_many :remarks, resource: remarks
      has_many :parts, resource: self
      writable :title, :remarks, :parts
    end
    [items, remarks]
  end

  def send_data(method, path, data)
    Rack::MockRequest.new(@app).request(method, path, input: JSON.generate(data: data), "CONTENT_TYPE" => "application/vnd.api+json")
  end
end
