# frozen_string_literal: true

require "test_helper"
require "active_record"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "sequel"

# Reads from a real streaming replica of PostgreSQL that is held back: what a client has written, it reads.
module ReplicasContract
  SERVERS = {} # rubocop:disable Style/MutableConstant -- one pair of servers for all tests
  JSON_API = "application/vnd.api+json"

  attr_reader :before_rows

  def setup
    needs :postgres
    @primary_url, @replica_url = SERVERS[:urls] ||= Castellan::TestServers.postgres_with_replica
    @primary, @replica = [@primary_url, @replica_url].map { |url| Sequel.connect(url, keep_reference: false) }
    @primary.run("DROP TABLE IF EXISTS notes")
    @primary.run("CREATE TABLE notes (id bigserial PRIMARY KEY, text varchar(20))")
    @primary.run("INSERT INTO notes (text) VALUES ('old')")
    catch_up
    @app = build
    pause
  end

  def teardown
    @replica&.run("SELECT pg_wal_replay_resume()")
    [@primary, @replica].compact.each(&:disconnect)
    disconnect if @app
  end

  def test_a_client_reads_what_it_has_written
    written = patch("new")
    assert_equal 200, written.status, written.body
    version = written["castellan-version"]
    assert_match %r{\A\h+/\h+\z}, version
    assert_includes written.body, "new"
    assert_equal %w[old new new], [get, get(version), get(version, path: "/notes/1")].map { |response| response.body[/old|new/] }
    @replica.run("SELECT pg_wal_replay_resume()")
    catch_up
    @primary.run("UPDATE notes SET text = 'newer'")
    catch_up
    pause
    @primary.run("UPDATE notes SET text = 'newest'")
    assert_equal "newer", get(version).body[/newer|newest/] # the replica again
  end

  def test_a_browser_sends_the_version_as_a_cookie
    @app = build(cookie: "seen")
    cookie = patch("new")["set-cookie"]
    assert_match(%r{\Aseen=\h+/\h+; path=/; httponly; samesite=lax\z}, cookie)
    assert_equal %w[new old old], [cookie[/\A[^;]+/], "seen=elsewhere", "other=1"].map { |one|
      request("GET", "/notes", "HTTP_COOKIE" => one).body[/old|new/]
    }
  end

  def test_only_a_successful_write_has_a_version
    assert_nil request("PATCH", "/notes/1", input: "{}", "CONTENT_TYPE" => JSON_API)["castellan-version"]
    assert_nil get["castellan-version"]
    assert request("DELETE", "/notes/1")["castellan-version"]
  end

  def test_a_write_whose_version_cannot_be_read_is_no_failure
    after_commit do
      @primary.get(Sequel.lit("count(pg_terminate_backend(pid)) FROM pg_stat_activity " \
                              "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"))
    end
    written = patch("new")
    assert_equal [200, nil, "new"], [written.status, written["castellan-version"], @primary[:notes].get(:text)], written.body
  end

  # A lock that the replica replays cancels the statement that reads the table.
  def test_a_read_that_recovery_cancels_is_read_from_the_primary
    @replica.run("ALTER SYSTEM SET max_standby_streaming_delay = 0")
    @replica.run("SELECT pg_reload_conf(), pg_wal_replay_resume()")
    @primary.run("UPDATE notes SET text = 'slow'")
    catch_up
    reading = Thread.new { get(path: "/notes?filter[slow]=1") }
    await("reads nothing") { @replica[:pg_stat_activity].where(Sequel.lit("state = 'active' AND query LIKE '%pg_sleep(1)%'")).count > 1 }
    @primary.run("ALTER TABLE notes ADD COLUMN size integer")
    response = reading.value
    assert_equal [200, "slow"], [response.status, response.body[/slow/]], response.body
  ensure
    @replica.run("ALTER SYSTEM RESET max_standby_streaming_delay")
    @replica.run("SELECT pg_reload_conf()")
  end

  def test_a_text_that_is_no_version_is_refused
    ["", "x", "0/0'; --", "0/0\xFF".b, "1/2/3"].each do |text|
      response = get(text)
      assert_equal [400, "Castellan-Version"], [response.status, JSON.parse(response.body)["errors"].first.dig("source", "header")]
    end
    assert_equal "old", get("0/1").body[/old|new/]
    assert_equal "old", get("FFFFFFFF/FFFFFFFF").body[/old|new/] # the primary, with the same row
  end

  # If the replica takes over now, the write is lost, and its version stays the same.
  def test_a_document_that_contains_a_write_is_never_served_from_a_server_that_lacks_it
    app = cached
    @replica.run("SELECT pg_wal_replay_resume()")
    catch_up
    pause
    @before_rows = -> { @before_rows = @primary.run("UPDATE notes SET text = 'new'") }
    read = ->(**headers) { request("GET", "/notes", app: app, **headers).body[/old|new/] }
    on_primary = -> { read.call("HTTP_CASTELLAN_VERSION" => "FFFFFFFF/FFFFFFFF") }
    assert_equal "new", on_primary.call # under the version from before the write, which the replica has
    assert_equal %w[old new old], [read.call, on_primary.call, read.call]
  ensure
    Castellan.keeper = @keeper
    self.class.send(:remove_const, :NoteResource)
  end

  private

  def resources
    thing = model
    resource = Class.new(Castellan::Resource) do
      model thing
      type "notes"
      attributes :text
      filter(:slow) { |notes, _| notes.where(Sequel.lit("pg_sleep(1) IS NOT NULL")) }
      writable :text
      deletable
    end
    [resource]
  end

  def build(**options)
    resource, = resources
    Rack::Lint.new(Castellan.app do
      resource resource
      replicas(**options)
    end)
  end

  # Calls `@before_rows` after each reading of a version.
  def cached
    @keeper = Castellan.keeper
    resource = self.class.const_set(:NoteResource, Class.new(resources.first) { cache :exact })
    versions = Castellan::Versions::ExactVersions.new(source)
    Castellan::Versions::ExactVersions.new(@primary).install(%w[notes])
    test = self
    versions.define_singleton_method(:current) { |*given, &failed| super(*given, &failed).tap { test.before_rows&.call } }
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    Castellan.app do
      resource resource
      replicas
    end
  end

  def get(version = nil, path: "/notes") = request("GET", path, **(version ? { "HTTP_CASTELLAN_VERSION" => version } : {}))

  def patch(text)
    data = { type: "notes", id: "1", attributes: { text: text } }
    request("PATCH", "/notes/1", input: JSON.generate(data: data), "CONTENT_TYPE" => JSON_API)
  end

  def request(method, path, app: @app, **options)
    headers = options.reject { |name, _| name.is_a?(Symbol) }
    Rack::MockResponse[*app.call(Rack::MockRequest.env_for(path, method: method, **options.slice(:input)).merge(headers))]
  end

  def pause
    @replica.run("SELECT pg_wal_replay_pause()")
    await("is not paused") { @replica.get(Sequel.lit("pg_get_wal_replay_pause_state()")) == "paused" }
  end

  # Until the replica has replayed what the primary has written.
  def catch_up
    position = @primary.get(Sequel.lit("pg_current_wal_insert_lsn()"))
    await("does not catch up") { @replica.get(Sequel.lit("pg_last_wal_replay_lsn() >= ?::pg_lsn", position)) }
  end

  def await(problem)
    deadline = Castellan::TestServers.now + 30
    until yield
      flunk "the replica #{problem}" if Castellan::TestServers.now > deadline
    end
  end
end

# By the roles of ActiveRecord.
class ReplicasOnActiveRecordTest < Minitest::Test
  include ReplicasContract

  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Note < Base
    self.table_name = "notes"
    class << self
      attr_accessor :committed
    end
    after_commit { self.class.committed&.call }
  end

  class Alone < ActiveRecord::Base
    self.abstract_class = true
  end

  class AloneNote < Alone
    self.table_name = "notes"
  end

  def test_a_model_without_a_replica_is_refused
    Alone.establish_connection(@primary_url)
    resource = Class.new(Castellan::Resource) do
      model AloneNote
      type "notes"
      attributes :text
    end
    error = assert_raises(Castellan::ConfigurationError) do
      Castellan.app do
        resource resource
        replicas
      end
    end
    assert_includes error.message, "connects_to database:"
  ensure
    Alone.remove_connection
  end

  private

  def model
    urls = { "notes_primary" => { url: @primary_url, adapter: "postgresql" },
             "notes_replica" => { url: @replica_url, adapter: "postgresql", replica: true } }
    ActiveRecord::Base.configurations = { ActiveRecord::ConnectionHandling::DEFAULT_ENV.call => urls }
    Base.connects_to(database: { writing: :notes_primary, reading: :notes_replica })
    Note.reset_column_information
    Note
  end

  def source = Base
  def after_commit(&block) = Note.committed = block

  def disconnect
    Note.committed = nil
    %i[writing reading].each { |role| Base.connected_to(role: role) { Base.remove_connection } }
    ActiveRecord::Base.configurations = {}
  end
end

# By the servers of Sequel.
class ReplicasOnSequelTest < Minitest::Test
  include ReplicasContract

  def test_a_database_without_a_replica_is_refused
    database = Sequel.connect(@primary_url, keep_reference: false)
    resource = Class.new(Castellan::Resource) do
      model Class.new(Sequel::Model(database[:notes]))
      type "notes"
      attributes :text
    end
    error = assert_raises(Castellan::ConfigurationError) do
      Castellan.app do
        resource resource
        replicas
      end
    end
    assert_includes error.message, "read_only"
  ensure
    database&.disconnect
  end

  # The server :read_only is a second connection to the same database.
  def test_writes_without_replicas_read_what_they_have_written
    database = Sequel.connect(@primary_url, keep_reference: false, servers: { read_only: {} })
    database.extension(:server_block)
    resource = Class.new(Castellan::Resource) do
      model Class.new(Sequel::Model(database[:notes]))
      type "notes"
      attributes :text
      writable :text
    end
    client = Rack::MockRequest.new(Castellan.app { resource resource })
    headers = { "CONTENT_TYPE" => "application/vnd.api+json" }
    written = client.post("/notes", input: JSON.generate(data: { type: "notes", attributes: { text: "one" } }), **headers)
    assert_equal 201, written.status, written.body
    id = JSON.parse(written.body)["data"]["id"]
    written = client.patch("/notes/#{id}", input: JSON.generate(data: { type: "notes", id: id, attributes: { text: "two" } }), **headers)
    assert_equal "two", JSON.parse(written.body)["data"]["attributes"]["text"]
  ensure
    database&.disconnect
  end

  private

  def model
    replica = URI(@replica_url)
    @database&.disconnect
    @database = Sequel.connect(@primary_url, keep_reference: false, servers: { read_only: { port: replica.port } })
    @database.extension(:server_block)
    @model = Class.new(Sequel::Model(@database[:notes]))
  end

  def source = @database

  def after_commit(&block)
    @model.define_method(:after_update) { db.after_commit(&block) }
  end

  def disconnect
    @database.disconnect
  end
end
