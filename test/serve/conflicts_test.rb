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

class ConflictsOnActiveRecordTest < Minitest::Test
  include ConflictsContract

  def journal = Journal.active_record(:sqlite)

  def conflicts = [->(_record) { raise SQLite3::BusyException }]
end

class ConflictsOnActiveRecordAndPostgresTest < Minitest::Test
  include ConflictsContract
  include PostgresConflicts

  def journal = Journal.active_record(:postgres)
end

class ConflictsOnSequelTest < Minitest::Test
  include ConflictsContract

  def journal = Journal.sequel(:sqlite)

  def conflicts = [->(_record) { raise SQLite3::BusyException }]
end

class ConflictsOnSequelAndPostgresTest < Minitest::Test
  include ConflictsContract
  include PostgresConflicts

  def journal = Journal.sequel(:postgres)
end
