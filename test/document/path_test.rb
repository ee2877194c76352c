# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "rack/mock_request"

# Measures how far a warm request walks through lib/castellan: method calls, files, and calls into another
# file. The limits leave some room for what other tests load.
class PathTest < Minitest::Test
  LIBRARY = File.realpath(File.join(ROOT, "lib/castellan"))
  OBSERVERS = %r{/(?:instrument/|instrument\.rb|verify\.rb)}
  WALK = Struct.new(:calls, :files, :changes, :way)

  def setup
    @database = Sequel.sqlite
    @database.create_table(:letters) do
      primary_key :id
      Integer :number
      String :title
    end
    3.times { |number| @database[:letters].insert(number: number, title: "Letter") }
    @connection = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    @connection.define_singleton_method(:name) { "PathTest::Base" }
    @connection.establish_connection(adapter: "sqlite3", database: ":memory:")
    @connection.connection.create_table(:users) { |table| table.string :email }
  end

  def teardown
    @database.disconnect
    Sequel::DATABASES.delete(@database)
    @connection.remove_connection
  end

  def test_a_get_of_a_sorted_page
    letter = Class.new(Sequel::Model(@database[:letters]))
    resource = Class.new(Castellan::Resource) do
      model letter
      type "letters"
      attributes :number, :title
      sort :number
      page size: 2, max_size: 10
    end
    app = Castellan.app { resource resource }
    get = lambda {
      env = Rack::MockRequest.env_for("/letters?sort=number&page[size]=2")
      -> { app.call(env).last.each { |bytes| refute_empty bytes } }
    }
    assert_walk(get, calls: 120, files: 25, changes: 52)
  end

  def test_a_render_json_of_a_relation_in_a_controller_of_rails
    require "action_controller"
    resource = users
    controller = Class.new(ActionController::API) do
      define_method(:index) { render json: resource.document(resource.definition.model.all) }
    end
    controller.define_singleton_method(:name) { "PathTest::UsersController" }
    action = controller.action(:index)
    get = lambda {
      env = Rack::MockRequest.env_for("/users")
      -> { action.call(env).last.each { |bytes| assert_includes bytes, "ada@example.com" } }
    }
    assert_walk(get, calls: 120, files: 25, changes: 52)
  end

  private

  def users
    user = Class.new(@connection) { self.table_name = "users" }
    user.define_singleton_method(:name) { "PathTest::User" }
    user.create!(email: "ada@example.com")
    Class.new(Castellan::Resource) do
      model user
      type "users"
      attributes :email
    end
  end

  # @param request [#call] prepares a request and returns a callable that runs it
  def assert_walk(request, **most)
    3.times { request.call.call }
    walk = walk(&request.call)
    most.each { |figure, limit| assert_operator walk[figure], :<=, limit, "#{figure} of #{walk.to_h.except(:way)}\n#{walk.way}" }
  end

  def walk(&block)
    files = []
    way = []
    here = Thread.current
    # Observers that another test has loaded are not on the path.
    trace = TracePoint.new(:call) do |call|
      next unless Thread.current == here && call.path.start_with?(LIBRARY) && !call.path.match?(OBSERVERS)

      files << call.path
      way << "#{call.path.delete_prefix(LIBRARY)} #{call.method_id}"
    end
    trace.enable(&block)
    WALK.new(files.size, files.uniq.size, files.each_cons(2).count { |one, other| one != other }, way.join("\n"))
  end
end
