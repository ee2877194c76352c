# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "active_record"
require "sequel"

# A `from:` path without a declared relationship holds the scope of the model's resource, also if nothing has
# loaded that resource yet.
class ScopeOfPathResourceTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: ":memory:", idle_timeout: 0)
  end

  class Desk < Base; end

  class Worker < Base
    belongs_to :desk, class_name: "ScopeOfPathResourceTest::Desk"
  end

  class WorkerResource < Castellan::Resource
    model Worker
    attribute :room, from: "desk.room"
  end

  DESK_RESOURCE = <<~RUBY
    class ScopeOfPathResourceTest::DeskResource < Castellan::Resource
      model ScopeOfPathResourceTest::Desk
      attributes :room
      scope { |desks, _| desks.where(secret: false) }
    end
  RUBY

  def test_an_autoloaded_resource_holds_its_scope_along_a_path
    Base.connection.create_table(:desks, force: true) { |table| table.string(:room) && table.boolean(:secret) }
    Base.connection.create_table(:workers, force: true) { |table| table.integer(:desk_id) }
    [false, true].each { |secret| Worker.create!(desk: Desk.create!(room: "R#{secret}", secret: secret)) }
    Dir.mktmpdir do |folder|
      File.write("#{folder}/desk_resource.rb", DESK_RESOURCE)
      self.class.autoload(:DeskResource, "#{folder}/desk_resource.rb")
      rooms = JSON.parse(WorkerResource.render)["data"].map { |worker| worker["attributes"]["room"] }
      assert_equal ["Rfalse", nil], rooms
    end
  end
end

# A compound of datasets without from_self can be a scope.
class CompoundScopeTest < Minitest::Test
  def setup
    @database = Sequel.sqlite
    @database.create_table(:notes) do
      primary_key :id
      String :title
    end
    4.times { |index| @database[:notes].insert(title: "N#{index}") }
    @model = Class.new(Sequel::Model(@database[:notes]))
  end

  def teardown
    @database.disconnect
  end

  def test_a_union_without_from_self_as_a_scope
    notes = @model
    resource = Class.new(Castellan::Resource) do
      model notes
      type "notes"
      attributes :title
      page size: 9, count: true
      scope { |all, _| all.where(id: 1).union(all.where(id: [1, 3]), from_self: false) }
    end
    assert_equal %w[1 3], JSON.parse(resource.render)["data"].map { |note| note["id"] }
    assert_equal 2, JSON.parse(resource.render)["meta"]["total"]
    assert_equal [200, 404], [3, 2].map { |id| resource.document(id: id).status }
    assert_equal %w[3], JSON.parse(resource.render(notes.where(title: %w[N1 N2])))["data"].map { |note| note["id"] }
  end

  def test_a_union_without_from_self_that_the_caller_gives
    notes = @model
    resource = Class.new(Castellan::Resource) do
      model notes
      type "notes"
      attributes :title
    end
    compound = notes.where(id: 1).union(notes.where(id: 4), from_self: false).order(Sequel.desc(:id))
    assert_equal %w[4 1], JSON.parse(resource.render(compound))["data"].map { |note| note["id"] }
  end
end
