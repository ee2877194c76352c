# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"

# Writers that get into each other's way: serialization failures, deadlocks, busy databases and lock columns.
module ConflictsContract
  CHANGE = JSON.generate(data: { type: "posts", id: "1", attributes: { body: "changed" } })

  def setup
    journal.fill
  end

  def test_a_transaction_that_the_database_rolled_back_runs_again
    conflicts.each do |conflict|
      attempts = 0
      app = build { |record| (attempts += 1) < 4 ? conflict.call(record) : nil }
      assert_equal [200, 4], [patch(app, CHANGE).status, attempts]
      assert_equal "changed", journal.rows("SELECT body FROM posts WHERE id = 1").first["body"]
    end
  end

  def test_it_runs_four_times_at_most
    attempts = 0
    app = build { |record| (attempts += 1) && conflicts.first.call(record) }
    response = patch(app, CHANGE)
    assert_equal [503, "1", 4], [response.status, response["retry-after"], attempts]
    assert_nil journal.rows("SELECT body FROM posts WHERE id = 1").first["body"]
  end

  def test_an_old_value_of_the_lock_column_is_409
    app = build { nil }
    change = ->(version) { JSON.generate(data: { type: "posts", id: "1", attributes: { lock_version: version, rating: 1 } }) }
    assert_equal 200, patch(app, change.call(0)).status
    response = patch(app, change.call(0))
    assert_equal [409, "the record was changed by another request; read it again"],
                 [response.status, JSON.parse(response.body)["errors"].first["detail"]]
    assert_equal 1, journal.rows("SELECT lock_version FROM posts WHERE id = 1").first["lock_version"]
  end

  def test_a_request_that_changes_no_column_leaves_the_lock_column
    app = build { nil }
    [{}, { relationships: { tags: { data: [] } } }].each do |members|
      response = patch(app, JSON.generate(data: { type: "posts", id: "1", **members }))
      assert_equal [200, 0], [response.status, journal.rows("SELECT lock_version FROM posts WHERE id = 1").first["lock_version"]]
    end
    assert_equal 0, journal.rows("SELECT COUNT(*) AS count FROM taggings WHERE post_id = 1").first["count"]
  end

  private

  # Runs the block after each update, inside its transaction.
  def build(&after)
    careless = Class.new(journal.models::PostResource) do
      writable :lock_version
      define_method(:update) do |record, attributes, viewer|
        super(record, attributes, viewer).tap { after.call(record) }
      end
    end
    Rack::Lint.new(Castellan.app { resource careless, at: "posts" })
  end

  def patch(app, body)
    env = Rack::MockRequest.env_for("/posts/1", method: "PATCH", input: body, "CONTENT_TYPE" => "application/vnd.api+json")
    Rack::MockResponse[*app.call(env)]
  end
end

# The codes of PostgreSQL for a serialization failure and a deadlock.
module PostgresConflicts
  def setup
    needs :postgres
    super
  end

  def conflicts
    %w[40001 40P01].map do |code|
      ->(_record) { journal.run("DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '#{code}'; END $$") }
    end
  end
end

# SQLite rolls back by itself, so the ROLLBACK that follows fails.
module SQLiteConflicts
  def conflicts = [->(_record) { raise SQLite3::BusyException }]

  def test_a_trigger_that_rolls_back_is_422_and_the_next_write_succeeds
    journal.run("CREATE TRIGGER refuse BEFORE UPDATE ON posts WHEN NEW.body = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'not allowed'); END")
    app = build { nil }
    bodies = { "changed" => 200, "bad" => 422, "changed again" => 200 }
    assert_equal(bodies, bodies.to_h { |body, _| [body, patch(app, ConflictsContract::CHANGE.sub("changed", body)).status] })
  ensure
    journal.run("DROP TRIGGER refuse")
  end
end

class ConflictsOnActiveRecordTest < Minitest::Test
  include ConflictsContract
  include SQLiteConflicts

  def journal = Journal.active_record(:sqlite)
end

class ConflictsOnActiveRecordAndPostgresTest < Minitest::Test
  include ConflictsContract
  include PostgresConflicts

  def journal = Journal.active_record(:postgres)
end

# The plugin optimistic_locking counts also a save of a record without changes.
module SequelConflicts
  def test_a_value_of_a_virtual_attribute_reaches_the_hooks
    seen = []
    noted = Class.new(journal.models::Post) do
      attr_writer :note

      define_method(:after_save) { super().tap { seen << @note } }
    end
    resource = Class.new(journal.models::PostResource) do
      model noted
      attribute(:note) { nil }
      writable :note
    end
    change = JSON.generate(data: { type: "posts", id: "1", attributes: { note: "for the hook" } })
    assert_equal 200, patch(Castellan.app { resource resource, at: "posts" }, change).status
    assert_equal ["for the hook"], seen
  end
end

class ConflictsOnSequelTest < Minitest::Test
  include ConflictsContract
  include SequelConflicts
  include SQLiteConflicts

  def journal = Journal.sequel(:sqlite)
end

class ConflictsOnSequelAndPostgresTest < Minitest::Test
  include ConflictsContract
  include SequelConflicts
  include PostgresConflicts

  def journal = Journal.sequel(:postgres)
end

# ActiveRecord touches the owner of `touch: true` in front of the COMMIT.
class TouchedOwnersTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Shelf < Base; end
  class Book < Base; end

  class ShelfResource < Castellan::Resource
    model Shelf
    type "shelves"
    attributes :name, :updated_at, :lock_version
    has_many :books, resource: "TouchedOwnersTest::BookResource"
    writable :name, :books, :lock_version
  end

  class BookResource < Castellan::Resource
    model Book
    type "books"
    attributes :title
    belongs_to :shelf, resource: ShelfResource
    writable :title, :shelf
    deletable
  end

  def setup
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:shelves) { |t| [t.string(:name), t.integer(:lock_version, default: 0), t.timestamps] }
    Base.connection.create_table(:books) { |t| [t.string(:title), t.integer(:shelf_id)] }
    Shelf.has_many :books, class_name: "TouchedOwnersTest::Book"
    Book.belongs_to :shelf, class_name: "TouchedOwnersTest::Shelf", touch: true, optional: true
    2.times { Shelf.create!(updated_at: Time.utc(2026)) && Book.create! }
  end

  def teardown
    Base.remove_connection
  end

  def test_a_response_shows_the_touched_owner_as_the_next_read_does
    path = "/shelves/1?include=books"
    changed = send_data("PATCH", path, type: "shelves", id: "1", relationships: { books: { data: [{ type: "books", id: "1" }] } })
    assert_equal 200, changed.status, changed.body
    read = app.get(path)
    assert_equal [read.body, read["etag"]], [changed.body, changed["etag"]]
    created = send_data("POST", "/books?include=shelf", type: "books", attributes: { title: "b" }, relationships: { shelf: { data: one } })
    assert_equal JSON.parse(app.get("/shelves/1").body)["data"], JSON.parse(created.body)["included"].first
    attributes = JSON.parse(created.body)["included"].first["attributes"].slice("lock_version")
    assert_equal 200, send_data("PATCH", "/shelves/1", type: "shelves", id: "1", attributes: attributes).status
  end

  def test_an_operation_changes_the_owner_of_a_record_that_another_removes
    Book.update_all(shelf_id: 1)
    media_type = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'
    operations = [{ op: "remove", ref: { type: "books", id: "2" } }, { op: "update", data: { **one, attributes: { name: "a" } } }]
    body = JSON.generate("atomic:operations" => operations)
    response = app.post("/operations", :input => body, "CONTENT_TYPE" => media_type, "HTTP_ACCEPT" => media_type)
    assert_equal 200, response.status, response.body
    assert_equal [[1], "a"], [Book.ids, Shelf.find(1).name]
  end

  private

  def one = { type: "shelves", id: "1" }

  def app
    @app ||= Rack::MockRequest.new(Castellan.app do
      operations
      [ShelfResource, BookResource].each { |one| resource one }
    end)
  end

  def send_data(method, path, data)
    app.request(method, path, :input => JSON.generate(data: data), "CONTENT_TYPE" => "application/vnd.api+json")
  end
end
