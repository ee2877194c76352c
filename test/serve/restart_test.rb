# frozen_string_literal: true

require "test_helper"
require "active_record"
require "net/http"
require "sequel"

# PostgreSQL is stopped and started under load, behind Puma: 503 with Retry-After meanwhile, no half write, recovery by itself.
module RestartContract
  JSON_API = "application/vnd.api+json"
  THREADS = 4
  TABLES = %w[entries copies].map { |name| "CREATE TABLE #{name} (id bigserial PRIMARY KEY, note text NOT NULL)" }.freeze
  ENOUGH = 100 # responses before the restart, and after it
  PATIENCE = 60 # seconds

  def setup
    large_runs_only
    needs :postgres
    @server = Castellan::TestServers.send(:start_postgres)
    @models = connect("postgres://postgres@127.0.0.1:#{@server.port}/postgres")
  end

  def teardown
    disconnect if @models
    control("stop", "-m", "immediate") if @started
    @server&.stop
  end

  def test_a_restart_of_the_database_loses_nothing
    responses = Castellan::TestServers.puma(app, threads: THREADS) { |url| load_on(url) { restart } }
    statuses = responses.map { |response| response[:status] }
    assert_empty statuses - [200, 201, 503], responses.find { |response| ![200, 201, 503].include?(response[:status]) }.to_s
    assert_includes statuses, 503
    assert_equal ["1"], responses.select { |response| response[:status] == 503 }.map { |response| response[:retry_after] }.uniq
    last = responses.last(THREADS * 2).map { |response| response[:status] }
    assert_empty last - [200, 201], "the application did not recover"
    notes = rows("SELECT note FROM entries")
    assert_equal notes.sort, rows("SELECT note FROM copies").sort
    assert_empty responses.select { |response| response[:status] == 201 }.map { |response| response[:note] } - notes
  end

  private

  # Each record is written with a copy, in one transaction.
  def app
    models = @models
    entries = Class.new(Castellan::Resource) do
      model models::Entry
      type "entries"
      attributes :note
      writable :note
      page size: 5
      define_method(:create) do |attributes, viewer|
        super(attributes, viewer).tap { models::Copy.create(note: attributes[:note]) }
      end
    end
    Castellan.app { resource entries }
  end

  def load_on(url)
    responses = @responses = Queue.new
    stopping = false
    threads = Array.new(THREADS) do |number|
      Thread.new { responses << send_one(url, "#{number}-#{responses.size}-#{rand(1_000_000)}") until stopping }
    end
    more(ENOUGH)
    yield
    more(ENOUGH)
    stopping = true
    threads.each(&:join)
    Array.new(responses.size) { responses.pop }
  end

  # Waits for further responses.
  def more(number)
    wanted = @responses.size + number
    Timeout.timeout(PATIENCE) { Thread.pass until @responses.size >= wanted }
  end

  def send_one(url, note)
    uri = URI("#{url}/entries")
    response = if note.end_with?("3", "6", "9")
                 Net::HTTP.get_response(uri)
               else
                 Net::HTTP.post(uri, JSON.generate(data: { type: "entries", attributes: { note: note } }), "content-type" => JSON_API)
               end
    { status: response.code.to_i, retry_after: response["retry-after"], note: note, body: response.body[0, 300] }
  end

  def restart
    Process.kill(:INT, @server.pid)
    Process.wait(@server.pid)
    more(THREADS * 4)
    @started = true
    control("start", "-w", "-l", File.join(@server.dir, "data", "restarted.log"), "-o", "-p #{@server.port} -h 127.0.0.1 -k #{@server.dir}")
  end

  def control(*words)
    servers = Castellan::TestServers
    command = servers.send(:as_postgres, servers.send(:tool, "pg_ctl"), "-D", File.join(@server.dir, "data"), *words)
    system(*command, out: File::NULL, err: File::NULL) or flunk("pg_ctl #{words.first} failed")
  end
end

class RestartUnderActiveRecordTest < Minitest::Test
  include RestartContract

  private

  def connect(url)
    Module.new do
      const_set(:Base, Class.new(ActiveRecord::Base) { self.abstract_class = true })
      define_singleton_method(:name) { "Restarted" }
    end.tap do |models|
      Object.send(:remove_const, :Restarted) if Object.const_defined?(:Restarted)
      Object.const_set(:Restarted, models)
      models::Base.establish_connection("#{url}?pool=10&connect_timeout=2")
      TABLES.each { |sql| models::Base.connection.execute(sql) }
      models.const_set(:Entry, Class.new(models::Base) { self.table_name = "entries" })
      models.const_set(:Copy, Class.new(models::Base) { self.table_name = "copies" })
    end
  end

  def disconnect = @models::Base.remove_connection

  def rows(sql)
    @models::Base.connection.verify!
    @models::Base.connection.select_values(sql)
  end
end

class RestartUnderSequelTest < Minitest::Test
  include RestartContract

  private

  def connect(url)
    @db = Sequel.connect(url, max_connections: 10, connect_timeout: 2)
    TABLES.each { |sql| @db.run(sql) }
    database = @db
    Module.new.tap do |models|
      models.const_set(:Entry, Class.new(Sequel::Model(database[:entries])))
      models.const_set(:Copy, Class.new(Sequel::Model(database[:copies])))
    end
  end

  def disconnect
    Sequel.synchronize { Sequel::DATABASES.delete(@db) }
    @db.disconnect
  end

  def rows(sql) = @db.fetch(sql).map(:note)
end
