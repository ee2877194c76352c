# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "pg"
require "uri"
require_relative "../support/stalling_proxy"

# Versions that are kept in the process until PostgreSQL notifies of a write.
module NotifiedVersionsContract
  def setup
    needs :postgres
    @url = Castellan::TestServers.postgres_url
    @other = PG.connect(@url)
    @other.exec("CREATE TABLE posts (id serial PRIMARY KEY, title text); CREATE TABLE users (id serial PRIMARY KEY); CREATE SCHEMA shop; " \
                "CREATE TABLE shop.posts (id int); CREATE TABLE events (id int) PARTITION BY RANGE (id); " \
                "CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (10)")
    connect
    @lines = Queue.new
    @versions = versions
    @versions.install(%w[posts users shop.posts events])
    eventually { @versions.listening? }
  end

  def teardown
    @versions&.close
    disconnect if @other
    @other&.close
  end

  def test_a_hit_asks_the_database_nothing
    before_recheck do
      token = current("posts", "users")
      assert_equal @versions.exact.current([dependency("posts"), dependency("users")]), token
      silent { 3.times { assert_equal token, current("posts", "users") } }
    end
  end

  def test_a_write_of_any_program_is_noticed
    { "posts" => "INSERT INTO posts (title) VALUES ('a')", "shop.posts" => "INSERT INTO shop.posts VALUES (1)",
      "events" => "INSERT INTO events VALUES (1)", "events_1" => "INSERT INTO events_1 VALUES (2)" }.each do |table, sql|
      before = current(table)
      @other.exec(sql)
      eventually { current(table) != before }
      assert_equal @versions.exact.current([dependency(table)]), current(table)
    end
    before = current("events")
    @other.exec("INSERT INTO events_1 VALUES (3)")
    eventually { current("events") != before }
    assert_empty @lines, "the connection was never lost"
  end

  def test_a_write_to_another_table_changes_nothing
    before_recheck do
      before = current("users")
      posts = current("posts")
      @other.exec("INSERT INTO posts DEFAULT VALUES")
      eventually { current("posts") != posts }
      silent { assert_equal before, current("users") }
    end
  end

  # Any client of the database can notify of names that no table has.
  def test_notifications_of_unknown_tables_are_not_counted
    listener = @versions.instance_variable_get(:@listener)
    total = -> { listener.total(Castellan::Clock.monotonic_ns) }
    posts = -> { listener.generation(%w[posts], Castellan::Clock.monotonic_ns) }
    before = posts.call
    counted = total.call
    @other.exec("NOTIFY castellan_versions, 'unknown'")
    @other.exec("NOTIFY castellan_versions, 'posts'")
    eventually { posts.call != before }
    assert_equal counted + 1, total.call
  end

  # The memo of a hit must not outlive a write that comes while its version is read.
  def test_a_reading_ends_with_a_write_of_its_tables
    before_recheck do
      posts = dependency("posts")
      reading = @versions.reading([posts], current("posts"))
      2.times { assert @versions.noticed_none?(reading) }
      current("users")
      @other.exec("INSERT INTO users DEFAULT VALUES")
      2.times { assert @versions.noticed_none?(reading) }
      @other.exec("INSERT INTO posts DEFAULT VALUES")
      eventually { !@versions.noticed_none?(reading) }
    end
  end

  def test_a_rolled_back_write_changes_nothing
    before = current("posts")
    @other.exec("BEGIN; INSERT INTO posts DEFAULT VALUES; ROLLBACK")
    @other.exec("INSERT INTO users DEFAULT VALUES")
    assert_equal before, current("posts")
  end

  def test_within_a_transaction_the_database_is_asked
    current("posts")
    transaction do
      assert_equal current("posts"), @versions.exact.current([dependency("posts")])
      run_sql("INSERT INTO posts DEFAULT VALUES")
      assert_nil current("posts"), "a transaction that has written"
    end
  end

  def test_without_a_listener_each_version_is_exact
    before = current("posts")
    closed("false")
    @other.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() " \
                "AND (query ILIKE 'LISTEN%' OR query = 'SELECT 1')")
    eventually { !@versions.listening? }
    @other.exec("INSERT INTO posts DEFAULT VALUES")
    refute_equal before, current("posts"), "without a lag"
    assert_match(/no listener is connected/, @lines.pop)
    assert_equal @versions.exact.current([dependency("posts")]), current("posts")
    closed("true")
    eventually { @versions.listening? }
    assert_operator @lines.size, :<, 2, "one line for each class of errors: that of the lost connection and that of new ones may differ"
  end

  # Such as on a replica, where LISTEN is refused.
  def test_a_connection_that_never_listens_is_logged_once
    versions = versions(connect: { host: "127.0.0.1", port: Castellan::TestServers.free_port })
    refute_predicate versions, :listening?
    assert_match(/no listener is connected to it: .*refused/, Timeout.timeout(20) { @lines.pop })
    assert_equal @versions.exact.current([dependency("posts")]), versions.current([dependency("posts")])
  ensure
    versions&.close
  end

  # A server that is gone closes no connection, nor does a firewall.
  def test_a_connection_that_hangs_is_replaced
    uri = URI(@url)
    proxy = Castellan::StallingProxy.new(uri.port)
    versions = versions(connect: { host: "127.0.0.1", port: proxy.port, user: uri.user, dbname: uri.path.delete_prefix("/") })
    eventually { versions.listening? }
    proxy.stall(new_connections: false)
    line = Timeout.timeout(20) { @lines.pop }
    assert_match(/no listener is connected to it: the server does not answer\z/, line)
    eventually { versions.listening? }
    assert_empty @lines
  ensure
    versions&.close
    proxy&.close
  end

  def test_a_table_without_notifications_is_read_each_time
    @versions.exact.install(%w[posts])
    2.times do
      before = current("posts")
      @other.exec("INSERT INTO posts DEFAULT VALUES")
      refute_equal before, current("posts")
    end
  end

  # SET ROLE chooses its schema, which the process would not notice.
  def test_a_table_that_has_its_name_in_the_schema_of_a_role_is_read_each_time
    @other.exec("CREATE ROLE tenant_#{Process.pid}; CREATE SCHEMA tenant_#{Process.pid} CREATE TABLE posts (id serial)")
    2.times do
      before = current("posts")
      @versions.exact.stub(:current, ->(*) { "asked" }) { assert_equal "asked", current("posts") }
      assert_equal before, current("posts")
    end
  ensure
    @other.exec("DROP ROLE tenant_#{Process.pid}")
  end

  def test_with_poll_a_table_without_notifications_is_read_once_in_so_many_seconds
    @versions.exact.install(%w[posts])
    polled = versions(poll: 0.5)
    eventually { polled.listening? }
    now_ns = Castellan::Clock.monotonic_ns
    read = ->(at_ns) { Castellan::Clock.stub(:monotonic_ns, at_ns) { polled.current([dependency("posts")]) } }
    before = read.call(now_ns)
    @other.exec("INSERT INTO posts DEFAULT VALUES")
    polled.exact.stub(:current, ->(*) { flunk "the version was read" }) { assert_equal before, read.call(now_ns + 499_000_000) }
    refute_equal before, read.call(now_ns + 500_000_000)
  ensure
    polled&.close
  end

  def test_what_sends_no_notification_is_noticed_after_a_while
    before = current("posts")
    @other.exec("ALTER TABLE posts ADD COLUMN body text")
    later { refute_equal before, current("posts") }
    @other.exec("ALTER TABLE posts DISABLE TRIGGER castellan_version")
    later { assert_nil current("posts") }
  end

  def test_a_forked_process_listens_by_itself
    before = current("posts")
    reader, writer = IO.pipe
    pid = fork do
      eventually { @versions.listening? }
      seen = current("posts")
      writer.puts("ready")
      eventually { current("posts") != seen }
      writer.puts("seen")
    ensure
      exit!(0)
    end
    writer.close
    assert_equal "ready\n", reader.gets
    @other.exec("INSERT INTO posts DEFAULT VALUES")
    assert_equal "seen\n", reader.gets
    Process.wait(pid)
    assert_predicate @versions, :listening?, "the connection of the parent"
    eventually { current("posts") != before }
  end

  def test_a_closed_listener_is_not_started_again
    @versions.close
    refute_predicate @versions, :listening?
    assert_equal @versions.exact.current([dependency("posts")]), current("posts")
  end

  private

  def versions(**options)
    Castellan::Versions::NotifiedVersions.new(source, log: ->(line) { @lines << line }, **options)
  end

  def closed(allowed)
    admin = PG.connect(@url.sub(/\w+\z/, "postgres"))
    admin.exec("ALTER DATABASE #{@url[/\w+\z/]} ALLOW_CONNECTIONS #{allowed}")
  ensure
    admin&.close
  end

  def current(*tables) = @versions.current(tables.map { |table| dependency(table) })
  def dependency(table) = Castellan::Versions::Dependency.new(table)
  def silent(&block) = @versions.exact.stub(:current, ->(*) { flunk "the database was asked" }, &block)

  # However slow the machine is.
  def before_recheck(&block) = Castellan::Clock.stub(:monotonic_ns, Castellan::Clock.monotonic_ns, &block)

  # After `recheck`; the listener's clock goes on, so that it is not silent.
  def later(&block)
    ahead = @ahead = @ahead.to_i + 1_100_000_000
    real = Castellan::Clock.method(:monotonic_ns).unbind.bind(Castellan::Clock)
    Castellan::Clock.stub(:monotonic_ns, -> { real.call + ahead }, &block)
  end
end

class NotifiedVersionsOnActiveRecordTest < Minitest::Test
  include NotifiedVersionsContract

  # A pool of its own.
  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  def test_the_schema_has_the_line
    Castellan::Versions::ActiveRecordSchema.extend_active_record
    connection = Record.connection
    assert_equal({ { notify: true } => %w[events posts users] }, connection.castellan_version_tables)
    connection.castellan_versions(:posts, { notify: true })
    error = assert_raises(Castellan::ConfigurationError) { connection.castellan_versions(:posts, notifies: true) }
    assert_includes error.message, "notify: true and by: :account_id, got notifies:"
  end

  # A replica that is behind must not get the version of the primary, nor a tenant that of another.
  def test_a_version_is_that_of_the_role_and_of_the_search_path
    at_home = current("posts")
    reading do
      assert_equal exact("posts"), current("posts")
      refute_equal at_home, current("posts")
    end
    Record.connection.schema_search_path = "shop, public"
    assert_equal exact("posts"), current("posts")
    refute_equal at_home, current("posts")
    Record.connection.schema_search_path = "public"
    assert_equal at_home, current("posts")
  end

  def test_on_sqlite_each_version_is_read
    record = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    self.class.const_set(:Lite, record)
    record.establish_connection(adapter: "sqlite3", database: ":memory:")
    record.connection.execute("CREATE TABLE posts (id integer PRIMARY KEY)")
    lite = Castellan::Versions::NotifiedVersions.new(record)
    lite.install(%w[posts])
    tokens = Array.new(2) do
      record.connection.execute("INSERT INTO posts DEFAULT VALUES")
      lite.current([dependency("posts")])
    end
    assert_equal 2, tokens.compact.uniq.size
  ensure
    record&.remove_connection
  end

  # Ends when the connection has received a notification; if it was lost, a line says so before there is another one.
  FORKS = <<~RUBY
    require "active_record"
    require "castellan"
    ActiveRecord::Base.establish_connection(ARGV.first)
    versions = Castellan::Versions::NotifiedVersions.new(ActiveRecord::Base, log: ->(line) { puts line })
    Thread.pass until versions.listening?
    received = -> { versions.instance_variable_get(:@listener).generation(%w[posts], Castellan::Clock.monotonic_ns) }
    before = received.call
    Process.wait(fork { exit })
    ActiveRecord::Base.connection.execute("NOTIFY castellan_versions, 'posts'")
    Thread.pass while [nil, before].include?(received.call)
  RUBY
  private_constant :FORKS

  # The exit frees what the process has of its parent.
  def test_a_forked_process_that_reads_no_version_leaves_the_connection_to_its_parent
    assert_empty run_ruby("-e", FORKS, @url)
  end

  # Its fork runs until the standard input closes.
  KILLED = <<~RUBY
    require "active_record"
    require "castellan"
    ActiveRecord::Base.establish_connection(ARGV.first + "?application_name=killed")
    versions = Castellan::Versions::NotifiedVersions.new(ActiveRecord::Base)
    Thread.pass until versions.listening?
    fork { $stdin.read }
    puts "listening"
    $stdout.flush
    Process.kill(:KILL, Process.pid)
  RUBY
  private_constant :KILLED

  # Such a session would read no notification, until PostgreSQL had no room for more and commits failed.
  def test_no_session_of_a_killed_process_listens_because_a_fork_of_it_runs
    IO.popen([RbConfig.ruby, "-Ilib", "-e", KILLED, @url], "r+", chdir: ROOT) do |process|
      assert_equal "listening\n", process.gets
      sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'killed'"
      eventually { @other.exec(sessions).getvalue(0, 0) == "0" }
    end
  end

  private

  # In the role for reading, with another database.
  def reading(&)
    url = Castellan::TestServers.postgres_url
    Sequel.connect(url) do |other|
      other.run("CREATE TABLE posts (id serial PRIMARY KEY)")
      Castellan::Versions::ExactVersions.new(other).install(%w[posts])
    end
    Record.connection_handler.establish_connection(url, owner_name: Record, role: :reading)
    ActiveRecord::Base.connected_to(role: :reading, &)
  ensure
    Record.connection_handler.remove_connection_pool(Record.name, role: :reading)
  end

  def exact(table) = @versions.exact.current([dependency(table)])
  def connect = Record.establish_connection(@url)
  def disconnect = Record.remove_connection
  def source = Record
  def run_sql(sql) = Record.connection.execute(sql)
  def transaction(&) = Record.transaction(&)
end

class NotifiedVersionsOnSequelTest < Minitest::Test
  include NotifiedVersionsContract

  PROCESS = /K\0\0\0\x0c.{4}/mn # the message BackendKeyData
  NOTIFICATION = /A\0\0\0.{5}castellan_\w+\0[^\0]*\0/mn # the message NotificationResponse

  # As PgBouncer does, which gives a connection a server process for one transaction.
  def test_behind_a_pooler_that_delivers_no_notifications_each_version_is_read
    behind(->(bytes) { bytes.gsub(NOTIFICATION, "") }) do |notified|
      notified.current([dependency("posts")])
      line = Timeout.timeout(10) { @lines.pop }
      assert_match(/a pooler in transaction mode delivers no notifications: pass connect: of the database itself\z/, line)
      refute_predicate notified, :listening?
      2.times do
        before = notified.current([dependency("posts")])
        @other.exec("INSERT INTO posts DEFAULT VALUES")
        refute_equal before, notified.current([dependency("posts")]), "without a lag"
      end
    end
  end

  def test_behind_a_pooler_that_delivers_notifications_the_process_listens
    behind(->(bytes) { bytes }) do |notified|
      eventually { notified.listening? }
      before = notified.current([dependency("posts")])
      @other.exec("INSERT INTO posts DEFAULT VALUES")
      eventually { notified.current([dependency("posts")]) != before }
      assert_empty @lines
    end
  end

  # Of which one may be behind.
  # The extension arbitrary_servers takes servers that the database does not list.
  def test_a_server_that_is_not_listed_has_its_own_versions
    elsewhere = URI(Castellan::TestServers.postgres_url)
    Sequel.connect(elsewhere.to_s, keep_reference: false) do |database|
      database.create_table(:posts) { primary_key :id }
      Castellan::Versions::ExactVersions.new(database).install(%w[posts])
    end
    database = Sequel.connect(@url, keep_reference: false, servers: {})
    database.extension(:arbitrary_servers, :server_block)
    versions = Castellan::Versions::NotifiedVersions.new(database, recheck: 3600)
    eventually { versions.listening? }
    there = ->(&block) { database.with_server({ database: elsewhere.path.delete("/"), port: elsewhere.port }, &block) }
    seen = -> { [versions.current([dependency("posts")]), versions.exact.address] }
    both = Array.new(2) { [seen.call, there.call(&seen)] }
    assert_equal [both.first] * 2, both
    assert_equal [2, 2], both.first.transpose.map { |column| column.compact.uniq.size }
  ensure
    versions&.close
    database&.disconnect
  end

  def test_with_several_servers_each_version_is_read
    database = Sequel.connect(@url, servers: { read_only: {} })
    notified = Castellan::Versions::NotifiedVersions.new(database)
    eventually { notified.listening? }
    2.times do
      before = notified.current([dependency("posts")])
      @other.exec("INSERT INTO posts DEFAULT VALUES")
      refute_equal before, notified.current([dependency("posts")])
    end
  ensure
    notified&.close
    database&.disconnect
  end

  private

  def behind(change)
    proxy = Castellan::StallingProxy.new(URI(@url).port) { |bytes| change.call(bytes.sub(PROCESS) { "K\0\0\0\x0c\x7f\xff\xff\xff".b }) }
    database = Sequel.connect(@url.sub(/:#{URI(@url).port}\b/, ":#{proxy.port}"))
    notified = Castellan::Versions::NotifiedVersions.new(database, log: ->(line) { @lines << line })
    yield notified
  ensure
    notified&.close
    database&.disconnect
    Sequel::DATABASES.delete(database)
    proxy&.close
  end

  def connect = @db = Sequel.connect(@url)
  def disconnect = @db.disconnect
  def source = @db
  def run_sql(sql) = @db.run(sql)
  def transaction(&) = @db.transaction(&)
end
