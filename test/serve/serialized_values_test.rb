# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "rack"
require "castellan"

# A column that the model stores as text, with `serialize` or the plugin serialization, is written as it is read.
class SerializedValuesTest < Minitest::Test
  DB = Sequel.sqlite(keep_reference: false)
  DB.create_table(:notes) do
    primary_key :id
    String :settings, text: true
    String :title
  end

  class Note < Sequel::Model(DB[:notes])
    plugin :serialization, :json, :settings
  end

  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
  end
  Base.connection.execute("CREATE TABLE letters (id INTEGER PRIMARY KEY, settings TEXT, title TEXT)")

  class Letter < Base
    self.table_name = "letters"
    serialize :settings, coder: JSON
  end

  def test_a_client_writes_what_it_has_read
    [Note, Letter].each do |model|
      [{ "a" => [1, nil] }, [1, "two"], "text"].each do |value|
        response = post(model, settings: value)
        assert_equal [201, value], [response.status, JSON.parse(response.body).dig("data", "attributes", "settings")], response.body
      end
    end
  end

  def test_other_columns_and_values_are_checked_as_before
    [Note, Letter].each do |model|
      assert_equal 422, post(model, title: { "a" => 1 }).status
      assert_equal 422, post(model, settings: { "a" => "\0" }).status
    end
  end

  private

  def post(source, **values)
    resource = Class.new(Castellan::Resource) do
      model source
      type "notes"
      attributes :settings, :title
      writable :settings, :title
    end
    body = JSON.generate(data: { type: "notes", attributes: values })
    Rack::MockRequest.new(Castellan.app { resource(resource) }).post("/notes", "CONTENT_TYPE" => "application/vnd.api+json", input: body)
  end
end
