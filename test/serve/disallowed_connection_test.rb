# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "active_record"
require "rack"
require "rack/mock_request"

# A Rails application (7.2 and later) with `config.active_record.permanent_connection_checkout = :disallowed`, and one
# whose Rails.cache sends statements, as Solid Cache does.
class DisallowedConnectionTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Letter < Base; end

  class LetterResource < Castellan::Resource
    model Letter
    type "letters"
    attributes :subject
    writable :subject
    deletable
    cache :exact
  end

  class StatementCache < ActiveSupport::Cache::MemoryStore
    def read_multi(*names, **)
      Base.connection_pool.with_connection { |connection| connection.select_all("SELECT * FROM entries WHERE name = 'a'") }
      super
    end
  end

  def setup
    skip "since Rails 7.2" unless ActiveRecord.respond_to?(:permanent_connection_checkout=)
    @directory = Dir.mktmpdir
    Base.establish_connection(adapter: "sqlite3", database: File.join(@directory, "letters.sqlite3"))
    Base.connection_pool.with_connection do |connection|
      connection.create_table(:letters) { |table| table.string :subject, index: { unique: true } }
      connection.create_table(:entries) { |table| table.string :name }
    end
    Letter.reset_column_information
    ActiveRecord.permanent_connection_checkout = :disallowed
    @app = Castellan.app do
      health
      resource LetterResource
    end
  end

  def teardown
    ActiveRecord.permanent_connection_checkout = true if ActiveRecord.respond_to?(:permanent_connection_checkout=)
    Base.remove_connection
    FileUtils.rm_rf(@directory) if @directory
  end

  def test_clients_write_where_model_connection_is_disallowed
    assert_equal 201, send_letter("POST", "/letters", subject: "One")
    assert_equal 409, send_letter("POST", "/letters", subject: "One"), "the unique index is found"
    assert_equal 200, send_letter("PATCH", "/letters/1", id: "1", subject: "Two")
    assert_equal 204, respond("DELETE", "/letters/1").status
  end

  # As in a config.ru without Rails, where nothing else gives it back: a thread of Puma would keep one of the pool.
  def test_a_request_leaves_no_connection_leased
    requests = [["GET", "/ready"], ["POST", "/letters", { subject: "One" }], ["POST", "/letters", { subject: "One" }],
                ["PATCH", "/letters/1", { subject: "Two" }], ["GET", "/letters"], ["DELETE", "/letters/1"]]
    statuses = requests.map do |method, path, attributes|
      status = attributes ? send_letter(method, path, id: path[/\d+/], **attributes) : respond(method, path).status
      assert_nil @leased, "#{method} #{path}"
      status
    end
    assert_equal [200, 201, 409, 200, 200, 204], statuses
  end

  def test_a_connection_of_the_caller_is_released_by_the_caller
    Base.with_connection { |connection| assert_same connection, (respond("GET", "/ready") && @leased) }
    Base.with_connection { assert_equal 201, send_letter("POST", "/letters", subject: "One") }
    assert_nil Base.connection_pool.active_connection?
  end

  def test_readiness_and_a_transaction_of_the_caller
    assert_equal 200, respond("GET", "/ready").status
    Letter.transaction do
      Letter.create!(subject: "One")
      assert_includes LetterResource.render(Letter.all), "One"
    end
  end

  def test_statements_of_the_cache_store_are_no_finding
    before = Castellan.keeper
    versions = Castellan::Versions::ExactVersions.new(Base)
    versions.install(%w[letters])
    Castellan.keep(store: StatementCache.new, versions: versions)
    assert_empty(Castellan::Detect.watch(slow_ms: nil) { assert_equal 200, respond("GET", "/letters").status })
  ensure
    Castellan.keeper = before
  end

  private

  def send_letter(method, path, id: nil, **attributes)
    respond(method, path, input: JSON.generate(data: { type: "letters", id: id, attributes: attributes }.compact)).status
  end

  def respond(method, path, **options)
    env = Rack::MockRequest.env_for(path, method: method, "CONTENT_TYPE" => "application/vnd.api+json", **options)
    Rack::MockResponse[*@app.call(env)]
  ensure
    @leased = Base.connection_pool.active_connection?
  end
end
