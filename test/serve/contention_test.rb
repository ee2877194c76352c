# frozen_string_literal: true

require "test_helper"
require "pg"
require "serve/journal_requests"

# What clients meet who write the same records, one after the other or at the same time.
module TurnsContract
  include JournalRequests

  ATOMIC = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'

  def build
    careful = resource_of(:PostResource) { require_if_match }
    serve do |models|
      resource careful, at: "posts"
      resource models::CommentResource
      operations
    end
  end

  def test_a_relationship_is_changed_with_the_etag_of_its_own_url
    path = "/posts/1/relationships/tags"
    etag = get(path).first["etag"]
    assert_equal 204, send_data("PATCH", path, [{ type: "tags", id: "3" }], "HTTP_IF_MATCH" => etag).first.status
    assert_equal 412, send_data("PATCH", path, [], "HTTP_IF_MATCH" => etag).first.status
    assert_equal 204, send_data("PATCH", path, [], "HTTP_IF_MATCH" => get("/posts/1").first["etag"]).first.status
    assert_equal 412, send_data("PATCH", path, [], "HTTP_IF_MATCH" => '"other"').first.status
    assert_equal 428, send_data("PATCH", path, []).first.status
  end

  def test_the_lid_of_a_removed_record_names_nothing
    ref = { type: "comments", lid: "a" }
    operations = [{ op: "add", data: { **ref, attributes: { body: "Short" } } }, { op: "remove", ref: ref },
                  { op: "update", data: { **ref, attributes: { body: "Late" } } }]
    response = request("POST", "/operations", input: JSON.generate("atomic:operations": operations), "CONTENT_TYPE" => ATOMIC)
    assert_equal 404, response.status, response.body
    assert_equal "/atomic:operations/2", JSON.parse(response.body)["errors"].first["source"]["pointer"]
  end

  # Such as a primary that has become a replica, or a file that cannot be written.
  def test_a_database_that_can_only_be_read_answers_writes_with_503
    setting = self.class.name.include?("Postgres") ? "SET default_transaction_read_only =" : "PRAGMA query_only ="
    journal.run("#{setting} 1")
    refused = send_data("POST", "/comments", type: "comments", attributes: { body: "Late" }).first
    assert_equal [503, "1"], [refused.status, refused["retry-after"]]
    assert_equal 200, get("/comments").first.status
  ensure
    journal.run("#{setting} 0")
  end
end

JournalRequests.on_every_database(TurnsContract)

# On PostgreSQL, where several transactions write at the same time.
module ContentionContract
  include JournalRequests

  def build
    test = self
    meeting = resource_of(:PostResource) do
      sort :published_on
      page :cursor, size: 1
      define_method(:update) do |record, attributes, viewer|
        test.between
        super(record, attributes, viewer)
      end
    end
    serve do |models|
      resource meeting, at: "posts"
      resource models::CommentResource
    end
  end

  # Runs while a request has read the records that it names, and before it writes.
  def between
    other { |connection| connection.exec(@statement) } if @statement
  end

  def test_a_record_that_joins_a_relationship_keeps_what_another_client_has_written
    journal.run("UPDATE comments SET post_id = 2 WHERE id = 1")
    @statement = "UPDATE comments SET body = 'Newer' WHERE id = 1"
    send_data("POST", "/posts/1/relationships/comments", [{ type: "comments", id: "1" }])
    assert_equal({ "body" => "Newer", "post_id" => 1 }, journal.rows("SELECT body, post_id FROM comments WHERE id = 1").first)
  end

  def test_a_statement_that_the_database_cancels_is_503
    other do |connection|
      connection.exec("BEGIN; LOCK TABLE posts")
      %w[statement_timeout lock_timeout].each do |setting|
        journal.run("SET #{setting} = '50ms'")
        assert_equal 503, get("/posts/1").first.status, setting
        assert_equal 503, send_data("POST", "/posts", type: "posts", attributes: { title: "Late" }).first.status, setting
      ensure
        journal.run("SET #{setting} = 0")
      end
    end
  end

  # A thread without an executor keeps its connection, whose session the server ends, as with each restart.
  def test_a_write_after_one_whose_connection_was_lost_is_answered
    patch = -> { send_data("PATCH", "/posts/1", type: "posts", id: "1", attributes: { title: "Again" }).first.status }
    assert_equal 200, patch.call
    pid = journal.rows("SELECT pg_backend_pid() AS pid").first["pid"]
    @statement = "SELECT pg_terminate_backend(#{pid})"
    assert_equal 503, patch.call
    @statement = nil
    assert_equal 200, patch.call
    pid = journal.rows("SELECT pg_backend_pid() AS pid").first["pid"]
    other { |connection| connection.exec("SELECT pg_terminate_backend(#{pid})") }
    assert_includes [200, 503], patch.call
    assert_equal 200, patch.call
  end

  # The session ends during COMMIT, so the server cannot know whether the data is written.
  def test_a_request_whose_commit_was_lost_is_not_performed_again
    journal.run("CREATE OR REPLACE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS " \
                "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'")
    journal.run("CREATE CONSTRAINT TRIGGER leave AFTER INSERT ON tags DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION leave()")
    @app = serve do |models|
      idempotency store: Castellan::Store::MemoryStore.new
      resource models::TagResource
    end
    tag = { type: "tags", attributes: { name: "once" } }
    statuses = Array.new(2) { send_data("POST", "/tags", tag, "HTTP_IDEMPOTENCY_KEY" => "a").first.status }
    assert_equal [503, 409], statuses
  ensure
    other { |connection| connection.exec("DROP FUNCTION leave CASCADE") }
  end

  def test_cursors_lead_past_dates_before_christ_and_after_9999
    days = ["0044-03-15 BC", "0005-02-28 BC", "20000-01-01"]
    days.each.with_index(1) { |day, id| journal.run("UPDATE posts SET published_on = '#{day}' WHERE id = #{id}") }
    path, found = "/posts?sort=published_on", []
    while path
      response, document = get(path)
      assert_equal 200, response.status, response.body
      found += document["data"].map { |one| one["id"] }
      path = document["links"]["next"]
    end
    assert_equal %w[1 2 3], found
  end

  private

  def other
    connection = PG.connect(journal.url)
    yield connection
  ensure
    connection&.close
  end
end

%i[active_record sequel].each do |orm|
  Object.const_set("ContentionOn#{orm == :sequel ? "Sequel" : "ActiveRecord"}Test", Class.new(Minitest::Test) do
    include ContentionContract

    define_method(:journal) do
      needs :postgres
      Journal.public_send(orm, :postgres)
    end
  end)
end

class ContentionOnActiveRecordTest
  # As a pooler whose server is away, which accepts a connection and refuses its first statement: ActiveRecord connects once
  # more, and forgets the transaction that it has begun.
  def test_a_transaction_that_active_record_has_forgotten_writes_nothing
    journal.run("UPDATE comments SET post_id = 2 WHERE id = 1")
    post = -> { send_data("POST", "/posts/1/relationships/comments", [{ type: "comments", id: "1" }]).first.status }
    [->(leave) { leave.call && post.call }, ->(leave) { after_begin(leave, &post) }].each do |losing|
      assert_equal 503, losing.call(leaving(journal.source.connection))
      assert_equal 2, journal.rows("SELECT post_id FROM comments WHERE id = 1").first["post_id"]
    end
    assert_equal 204, post.call
  end

  def test_the_log_has_what_a_server_that_refuses_the_connection_has_answered
    base = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    base.define_singleton_method(:name) { "Refused" }
    base.establish_connection("#{journal.url}_missing")
    error = assert_raises(ActiveRecord::NoDatabaseError) { base.connection.select_value("SELECT 1") }
    errors = StringIO.new
    Castellan::Serve::ErrorDocument.log_unavailable({ "rack.errors" => errors }, error)
    assert_match(/ActiveRecord::NoDatabaseError: .*FATAL:  database "\w+_missing" does not exist\n\z/, errors.string)
  ensure
    base.remove_connection
  end

  private

  def leaving(connection)
    connection.reconnect!
    pid = connection.select_value("SELECT pg_backend_pid()")
    refused = false
    connection.define_singleton_method(:configure_connection) do
      next super() if refused

      refused = true
      raise ActiveRecord::ConnectionFailed, "the server is away"
    end
    -> { other { |own| own.exec("SELECT pg_terminate_backend(#{pid}, 5000)") } }
  end

  def after_begin(leave, &)
    begun = lambda do |*, event|
      now, leave = leave, nil if event[:sql].start_with?("BEGIN")
      now&.call
    end
    ActiveSupport::Notifications.subscribed(begun, "sql.active_record", &)
  end
end
