# frozen_string_literal: true

require "test_helper"
require "castellan/profile"
require "rack/mock"
require "sequel"

# Which layer of Castellan's caches answered, and what was rendered.
class ProfileLayersTest < Minitest::Test
  class Versions
    attr_accessor :token

    def initialize = @token = "1"
    def current(_dependencies) = @token
    def record_versions(_table, ids) = ids.to_h { |id| [id, @token] }
  end

  def setup
    super
    @database = Sequel.sqlite
    @database.create_table(:books) do
      primary_key :id
      String :title
    end
    3.times { |number| @database[:books].insert(title: "book #{number}") }
    @store = Castellan::Store::MemoryStore.new
    @versions = Versions.new
  end

  def teardown
    forget(@database)
    Castellan.keeper = nil
    super
  end

  def resource
    books = Class.new(Sequel::Model(@database[:books]))
    Class.new(Castellan::Resource) do
      define_singleton_method(:name) { "ProfileLayersTest::BookResource" } # what has no name is not kept
      model books
      type "books"
      attributes :title
      cache :exact
    end
  end

  def serve
    Castellan.keep(store: @store, versions: @versions)
    books = resource
    app = Castellan.app { resource(books) }
    @middleware = Castellan::Profile::Middleware.new(app, authorize: ->(_env) { true }, environment: nil)
  end

  def get(**env) = Rack::MockRequest.new(@middleware).get("/books", env.transform_keys(&:to_s))

  def result = @middleware.results.find(@middleware.results.latest.first.id)

  def looks = result.cache.map { |look| look.values_at(:layer, :outcome) }

  def test_the_document_layer_missed_and_then_hit
    serve
    get
    assert_equal [%w[document miss], %w[document fill]], looks
    assert_equal [["render", "ProfileLayersTest::BookResource"]], result.spans.map { |span| span.values_at(:kind, :name) }
    assert_operator result.parts[:render_ns], :>, 0
    header = get.headers["server-timing"]
    assert_equal [%w[document hit]], looks
    assert_match(/cache;dur=[\d.]+;desc="document hit"/, header)
    assert_operator result.parts[:cache_ns], :>, 0
    assert(result.cache.all? { |look| look[:at_ns].between?(0, result.duration_ns) && look[:duration_ns].positive? })
  end

  def test_the_clients_copy_answered
    serve
    etag = get.headers["etag"]
    assert_equal 304, get(HTTP_IF_NONE_MATCH: etag).status
    assert_equal [%w[validator hit]], looks
  end

  def test_a_span_without_a_recording_works
    assert_equal 8, Castellan::Recording.span(:render, "x") { 8 }
  end

  def test_time_in_a_cache_is_not_counted_for_its_caller
    recorder = Castellan::Profile::Recorder.new
    recorder.cache(:document, :hit, 20, 10)
    recorder.span(:render, "a", 10, 50)
    recorder.span(:render, "b", 0, 100)
    assert_equal [10, 90], [recorder.exclusive(:cache), recorder.exclusive(:render)]
  end
end
