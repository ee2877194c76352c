# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "rack/mock_request"

# PostgreSQL is stopped: `stale_if_error` serves the last version, for so many seconds; without it, the client
# gets 503.
module OutageContract
  POSTS = "CREATE TABLE posts (id bigserial PRIMARY KEY, title text NOT NULL)"
  TABLES = %w[posts].freeze
  FETCH = { depends_on: "posts", stale_if_error: 600 }.freeze

  def setup
    needs :postgres
    @server = Castellan::TestServers.send(:start_postgres)
    @post = connect("postgres://postgres@127.0.0.1:#{@server.port}/postgres", "Outage#{self.class.name}")
    @versions = Castellan::Versions::NotifiedVersions.new(source, recheck: 0.01, log: ->(_) {})
    @versions.install(TABLES)
    run_sql("INSERT INTO posts (title) VALUES ('one'), ('two')")
    @before = Castellan.keeper
    @store = Castellan::Store::MemoryStore.new
    Castellan.keep(store: @store, versions: @versions)
  end

  def teardown
    Castellan.keeper = @before if @store
    @versions&.close
    disconnect if @post
    control("stop", "-m", "immediate") if @started
    @server&.stop
  end

  def test_the_last_version_is_served_while_the_database_is_down
    app = app(exact: [:exact, { expires_in: 3600, stale_if_error: 600 }], notified: [:notified, { stale_if_error: 600 }],
              paged: [:exact, { stale_if_error: 600 }], plain: [:exact, {}])
    paths = %w[/exact /exact/1 /notified /paged?page[number]=1 /paged?sort=title&fields[paged]=title]
    warm = paths.to_h { |path| [path, seen(get(app, path))] }
    zipped = get(app, "/exact", "HTTP_ACCEPT_ENCODING" => "gzip")
    get(app, "/plain")
    assert_equal [200], warm.values.map(&:first).uniq, warm.inspect
    fetched = Castellan.cache.fetch("titles", **FETCH) { "bytes" }

    stop
    2.times { assert_equal(warm, paths.to_h { |path| [path, seen(get(app, path))] }) }
    assert_equal zipped.body.b, get(app, "/exact", "HTTP_ACCEPT_ENCODING" => "gzip").body.b
    assert_equal 304, get(app, "/exact", "HTTP_IF_NONE_MATCH" => warm["/exact"][1]).status
    assert_equal fetched, Castellan.cache.fetch("titles", **FETCH) { raise IOError, "down" }
    assert_equal fetched, Castellan.cache.fetch("titles", **FETCH, notified: true) { raise IOError, "down" }
    assert_equal 503, get(app, "/plain").status, "it declares no stale_if_error"
    assert_equal 503, get(app, "/exact?sort=-title").status, "nobody asked for it before"

    later(601) { assert_equal [503], paths.map { |path| get(app, path).status }.uniq }

    start
    run_sql("UPDATE posts SET title = 'changed'")
    assert_includes get(app, "/exact").body, "changed"
  end

  # Only the version is read, so the ORM sees no error of the broken connection.
  def test_a_broken_connection_is_replaced_by_the_next_request
    app = app(exact: [:exact, { stale_if_error: 600 }])
    get(app, "/exact")
    stop
    start
    run_elsewhere("UPDATE posts SET title = 'elsewhere'")
    assert_equal 200, get(app, "/exact").status
    assert_includes get(app, "/exact").body, "elsewhere"
  end

  private

  def get(app, path, env = {}) = Rack::MockRequest.new(app).get(path, env)
  def seen(response) = [response.status, response["etag"], response.body]

  def app(resources)
    model = @post
    resources = resources.map do |type, (kind, options)|
      name = "#{type.capitalize}Of#{self.class.name}"
      Object.send(:remove_const, name) if Object.const_defined?(name)
      Object.const_set(name, Class.new(Castellan::Resource) do
        model model
        type type.to_s
        attributes :title
        sort :title
        page size: 10, count: :total
        cache kind, **options
      end)
    end
    Castellan.app { resources.each { |one| resource one } }
  end

  def later(seconds, &block)
    now_ns = Castellan::Clock.monotonic_ns
    Castellan::Clock.stub(:monotonic_ns, -> { now_ns + (seconds * 1_000_000_000) }, &block)
  end

  def stop
    Process.kill(:INT, @server.pid)
    Process.wait(@server.pid)
  end

  def start
    @started = true
    control("start", "-w", "-l", File.join(@server.dir, "data", "restarted.log"), "-o", "-p #{@server.port} -h 127.0.0.1 -k #{@server.dir}")
  end

  def control(*words)
    servers = Castellan::TestServers
    command = servers.send(:as_postgres, servers.send(:tool, "pg_ctl"), "-D", File.join(@server.dir, "data"), *words)
    system(*command, out: File::NULL, err: File::NULL) or flunk("pg_ctl #{words.first} failed")
  end

  def run_elsewhere(sql)
    connection = PG.connect(host: "127.0.0.1", port: @server.port, user: "postgres", dbname: "postgres")
    connection.exec(sql)
  ensure
    connection&.close
  end
end

class OutageUnderActiveRecordTest < Minitest::Test
  include OutageContract

  private

  def source = @base

  def connect(url, name)
    Object.send(:remove_const, name) if Object.const_defined?(name)
    models = Object.const_set(name, Module.new)
    @base = models.const_set(:Base, Class.new(ActiveRecord::Base) { self.abstract_class = true })
    @base.establish_connection("#{url}?connect_timeout=2")
    run_sql(POSTS)
    models.const_set(:Post, Class.new(@base) { self.table_name = "posts" })
  end

  def disconnect = @base.remove_connection

  def run_sql(sql) = @base.with_connection { |connection| connection.verify! && connection.execute(sql) }
end

class OutageUnderSequelTest < Minitest::Test
  include OutageContract

  private

  def source = @db

  def connect(url, _name)
    @db = Sequel.connect(url, connect_timeout: 2)
    run_sql(POSTS)
    Class.new(Sequel::Model(@db[:posts]))
  end

  def disconnect
    Sequel.synchronize { Sequel::DATABASES.delete(@db) }
    @db.disconnect
  end

  def run_sql(sql)
    @db.run(sql)
  rescue Sequel::DatabaseDisconnectError
    @db.run(sql)
  end
end
