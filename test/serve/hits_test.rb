# frozen_string_literal: true

require "test_helper"
require "active_record"
require "i18n"
require "tmpdir"
require "rack/mock_request"

# A hit is the response that a rendering gives, for every viewer, coding, parameter and surrounding of the application.
class HitsTest < Minitest::Test
  # Hits are for requests that nobody watches, so that a watched one is always rendered.
  class Watcher
    def query(*) = nil
  end

  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Author < Record
    has_many :letters
  end

  class Letter < Record
    belongs_to :author
  end

  class ChosenLetter < Record
    class << self
      attr_accessor :chosen

      def all(...) = super.where(id: chosen)
    end
  end

  class AuthorResource < Castellan::Resource
    model Author
    type "authors"
    attributes :name, :created_at
  end

  class LetterResource < Castellan::Resource
    model Letter
    type "letters"
    attributes :title, :sent_at
    belongs_to :author, resource: AuthorResource
    sort :id, :title, default: "id"
    filter :title
    filter(:of) { |letters, names, viewer| letters.where(viewer_id: viewer, title: names) }
    page size: 3, max_size: 9
    cache :exact
  end

  class SignerResource < Castellan::Resource
    model Author
    type "signers"
    has_many :signed, resource: "HitsTest::SignedResource", from: :letters
    cache :exact
  end

  class SignedResource < Castellan::Resource
    model Letter
    type "signed"
    belongs_to :author, resource: SignerResource
    cache :exact
  end

  class FlaggedResource < LetterResource
    type "flagged"
    per_viewer(:own) { |ids, viewer| Letter.where(viewer_id: viewer, id: ids).ids }
  end

  class VersionedResource < LetterResource
    type "versioned"
    per_viewer(:own, version: ->(viewer) { viewer }) { |ids, viewer| Letter.where(viewer_id: viewer, id: ids).ids }
  end

  class NotedResource < LetterResource
    class << self
      attr_accessor :asked, :version
    end

    type "noted"
    per_viewer(:own, version: ->(_viewer) { NotedResource.version }) do |ids, viewer|
      NotedResource.asked += 1
      Letter.where(viewer_id: viewer, id: ids).ids
    end
  end

  class MarkedResource < LetterResource
    class << self
      attr_accessor :asked
    end

    type "marked"
    per_viewer(:own, version: { marks: :viewer_id }) do |ids, viewer|
      MarkedResource.asked += 1
      Letter.connection.select_values("SELECT letter_id FROM marks WHERE viewer_id = #{Integer(viewer)}") & ids
    end
  end

  class HiddenResource < LetterResource
    type "hidden"
    attribute :viewer_id, if: ->(viewer) { viewer == 1 }
  end

  # Without links, which contain the query.
  class NestedResource < LetterResource
    type "nested"
    format :nested
  end

  class ScopedResource < LetterResource
    type "scoped"
    scope { |letters, viewer| letters.where(viewer_id: viewer) }
  end

  class ChangedResource < LetterResource
    type "changed"
    writable :title
  end

  class LocalResource < LetterResource
    type "local"
    attribute(:greeting, columns: [:title]) { |title| "#{I18n.locale}: #{title}" }
    vary_on { [I18n.locale.to_s] }
  end

  class ChosenResource < Castellan::Resource
    model ChosenLetter
    type "chosen"
    attributes :title
    cache :exact
  end

  # Its bytes may differ each time it is written.
  class ExpiringResource < LetterResource
    class << self
      attr_accessor :time
    end

    type "expiring"
    attribute(:time, columns: [:id], pure: true) { |_id| ExpiringResource.time }
    cache :exact, expires_in: 60
  end

  class ExpiringFlaggedResource < ExpiringResource
    type "expiring-flagged"
    per_viewer(:own) { |ids, viewer| Letter.where(viewer_id: viewer, id: ids).ids }
  end

  # RFC 9213: a CDN would store what it may, whatever Cache-Control says.
  class CdnResource < FlaggedResource
    type "cdn"
    cache_control max_age: 60, cdn: { max_age: 600 }
  end

  class VersionedCdnResource < VersionedResource
    type "versioned-cdn"
    cache_control max_age: 60, cdn: { max_age: 600 }
  end

  RESOURCES = [LetterResource, ExpiringResource, ExpiringFlaggedResource, FlaggedResource, VersionedResource, HiddenResource,
               ScopedResource, ChangedResource, LocalResource, NestedResource, NotedResource, MarkedResource].freeze
  TYPES = %w[letters expiring expiring-flagged flagged versioned hidden scoped changed local nested].freeze
  PATHS = TYPES.flat_map { |type| [type, "#{type}/2", "#{type}/99"] } +
          ["own", "own/2", "letters?include=author", "letters?page[number]=2", "letters?sort=-title", "letters?fields[letters]=title",
           "letters/2?include=author", "letters?filter[title]=Title 2", "letters?filter[of]=Title 2", "nested?filter[title]=Title 2",
           "nested?filter[title]=Title 3", "nested?filter[of]=Title 2",
           "nested?sort=-title", "nested?page[number]=2", "own?include=author"]
  CODINGS = [nil, "gzip", "gzip;q=0", "br, gzip"].freeze

  def setup
    @keeper = Castellan.keeper
    @directory = Dir.mktmpdir # SQLite writes more files beside the database
    Record.establish_connection(adapter: "sqlite3", database: File.join(@directory, "hits.sqlite3"))
    tables
    [Author, Letter].each(&:reset_column_information)
    fill
    @versions = Castellan::Versions::ExactVersions.new(Record)
    @versions.install(%w[authors letters marks])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: @versions)
    @app = app
  end

  def teardown
    Castellan.keeper = @keeper
    Record.remove_connection
    FileUtils.rm_rf(@directory)
  end

  def test_a_second_request_makes_no_rendering
    %w[letters letters/2 own flagged versioned local expiring expiring/2 expiring-flagged].each do |path|
      get(path)
      assert_equal 0, renderings { get(path) }, path
      assert_equal 0, renderings { get(path, "HTTP_IF_NONE_MATCH" => get(path)[1]["etag"]) }, path
    end
  end

  def test_an_equal_request_for_a_public_document_does_not_look_up_its_key
    CODINGS.each do |coding|
      expected = Array.new(3) { get("letters", "HTTP_ACCEPT_ENCODING" => coding) }.last
      Castellan.keeper.stub(:request_key, ->(*) { flunk "the key was looked up" }) do
        assert_equal expected, get("letters", "HTTP_ACCEPT_ENCODING" => coding)
        status, headers, body = get("letters", "HTTP_ACCEPT_ENCODING" => coding, "HTTP_IF_NONE_MATCH" => expected[1]["etag"])
        assert_equal [304, %w[etag vary cache-control], ""], [status, headers.keys, body]
        fields = { "HTTP_ACCEPT_ENCODING" => coding, "HTTP_IF_NONE_MATCH" => headers["etag"] }
        refute_respond_to @app.call(env("letters", 1, fields)).last, :to_ary
      end
    end
  end

  def test_nor_does_one_of_each_authenticated_viewer
    %w[nested versioned].product([nil, "gzip"]).each do |path, coding|
      expected = Array.new(3) { [1, 2].map { |viewer| get(path, viewer: viewer, "HTTP_ACCEPT_ENCODING" => coding) } }.last
      Castellan.keeper.stub(:request_key, ->(*) { flunk "the key was looked up" }) do
        assert_equal(expected, [1, 2].map { |viewer| get(path, viewer: viewer, "HTTP_ACCEPT_ENCODING" => coding) })
        etags = expected.map { |answer| answer[1]["etag"] }
        assert_equal path == "nested", etags.uniq.one?
        [1, 2].zip(etags) do |viewer, etag|
          answer = get(path, viewer: viewer, "HTTP_ACCEPT_ENCODING" => coding, "HTTP_IF_NONE_MATCH" => etag)
          assert_equal [304, %w[etag vary cache-control], etag, ""], [answer[0], answer[1].keys, answer[1]["etag"], answer[2]]
        end
      end
      next if path == "nested"

      tag = expected.first[1]["etag"]
      assert_equal expected.last, get(path, viewer: 2, "HTTP_ACCEPT_ENCODING" => coding, "HTTP_IF_NONE_MATCH" => tag)
    end
  end

  def test_nor_does_one_after_a_write
    2.times do |n|
      3.times { get("letters") }
      Letter.where(id: 2).update_all(title: "Written #{n}")
      expected = Array.new(3) { get("letters") }.last
      assert_includes expected[2], "Written #{n}"
      Castellan.keeper.stub(:request_key, ->(*) { flunk "the key was looked up" }) { assert_equal expected, get("letters") }
    end
  end

  def test_a_middleware_that_changes_a_response_changes_no_other
    expected = Marshal.load(Marshal.dump(Array.new(2) { get("nested") }.last))
    [nil, "gzip"].each do |coding|
      2.times do
        status, headers, body = @app.call(env("nested", 1, { "HTTP_ACCEPT_ENCODING" => coding }.compact))
        assert_equal 200, status
        headers.each_value { |value| value << ", changed" unless value.frozen? }
        body.each { |bytes| bytes << "changed" }
      end
    end
    assert_equal expected, get("nested")
  end

  # RFC 9110, section 8.8.1: other bytes have another entity tag, though the version of the tables is the same.
  def test_what_has_expired_is_written_anew_and_has_another_tag
    %w[expiring expiring-flagged].product(CODINGS).each do |path, coding|
      start_ms = now_ms = Castellan::Clock.wall_ms
      Castellan::Clock.stub(:wall_ms, -> { now_ms }) do
        ExpiringResource.time = "before"
        old = Array.new(2) { get(path, "HTTP_ACCEPT_ENCODING" => coding) }
        tag = old.last[1]["etag"]
        assert_equal old.first, old.last
        ExpiringResource.time = "after"
        now_ms = start_ms + 40_000
        assert_equal [304, old.last], [get(path, "HTTP_ACCEPT_ENCODING" => coding, "HTTP_IF_NONE_MATCH" => tag)[0],
                                       get(path, "HTTP_ACCEPT_ENCODING" => coding)]
        now_ms = start_ms + 61_000
        fresh = Array.new(2) { get(path, "HTTP_ACCEPT_ENCODING" => coding, "HTTP_IF_NONE_MATCH" => tag) }
        assert_equal [200, 200, true], [*fresh.map(&:first), fresh.map { |answer| answer[1]["etag"] }.uniq == [fresh[0][1]["etag"]]]
        refute_equal tag, fresh[0][1]["etag"]
      end
      Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: @versions)
    end
  end

  # Such as after a restart of the process.
  def test_a_client_that_only_revalidates_needs_one_rendering
    etag = get("letters")[1]["etag"]
    @app = app
    assert_equal 304, get("letters", "HTTP_IF_NONE_MATCH" => etag).first
    assert_equal 0, renderings { assert_equal 304, get("letters", "HTTP_IF_NONE_MATCH" => etag).first }
  end

  def test_hits_are_what_renderings_send
    random = Random.new(Minitest.seed)
    asked = PATHS.product([1, 2], CODINGS).shuffle(random: random)
    2.times { asked.each { |path, viewer, coding| assert_same_as_rendered(path, viewer, "HTTP_ACCEPT_ENCODING" => coding) } }
  end

  def test_conditions_are_those_of_renderings
    PATHS.product([1, 2]).each do |path, viewer|
      etag = get(path, viewer: viewer)[1]["etag"].to_s
      tags = [etag, "W/#{etag}", "\"other\", #{etag}", "\"other\"", "*", "\xFF"]
      %w[HTTP_IF_NONE_MATCH HTTP_IF_MATCH].product(tags).each do |name, list|
        assert_same_as_rendered(path, viewer, name => list)
      end
    end
  end

  def test_no_viewer_gets_the_response_of_another
    ["own", "own/2", "flagged", "versioned", "scoped", "hidden"].each do |path|
      responses = [1, 2, 1, 2].map { |viewer| get(path, viewer: viewer).then { |status, headers, body| [status, headers["etag"], body] } }
      assert_equal responses.first(2), responses.last(2), path
      refute_equal responses[0], responses[1], path
    end
    etags = [1, 2].map { |viewer| get("versioned", viewer: viewer)[1]["etag"] }
    assert_equal 200, get("versioned", "HTTP_IF_NONE_MATCH" => etags[0], viewer: 2)[0]
  end

  def test_values_with_a_version_are_read_once_for_each_viewer_and_version
    NotedResource.asked = 0
    NotedResource.version = 1
    assert_equal [[true, false, true]] * 4, [nil, nil, "gzip", nil].map { |coding| own(2, coding) }
    assert_equal 1, NotedResource.asked
    assert_equal [[false, true, false]] * 2, Array.new(2) { own(1) }
    assert_equal [true, false, true], own(2)
    assert_equal 2, NotedResource.asked
    NotedResource.version = 2
    assert_equal [true, false, true], own(2, "gzip")
    assert_equal 3, NotedResource.asked
    Letter.where(id: 2).delete_all
    2.times { assert_equal [true, true, false], own(2) }
    assert_equal 4, NotedResource.asked
  end

  def test_values_with_the_version_of_a_table_are_read_again_when_it_changes
    MarkedResource.asked = 0
    assert_equal [[false, false, false]] * 2, Array.new(2) { own(2, type: "marked") }
    etag = get("marked", viewer: 2)[1]["etag"]
    assert_equal [304, 1], [get("marked", "HTTP_IF_NONE_MATCH" => etag, viewer: 2)[0], MarkedResource.asked]
    Record.connection.execute("INSERT INTO marks VALUES (2, 3)")
    assert_equal [[false, false, true]] * 2, Array.new(2) { own(2, type: "marked") }
    assert_equal [200, [false, false, false]], [get("marked", "HTTP_IF_NONE_MATCH" => etag, viewer: 2)[0], own(1, type: "marked")]
    assert_equal 3, MarkedResource.asked
    @versions.uninstall(%w[marks])
    assert_equal [[false, false, true]] * 2, Array.new(2) { own(2, type: "marked") }
    assert_equal 5, MarkedResource.asked
  end

  def test_values_are_not_those_of_other_records_under_one_key
    blanks = [%w[1 2], %w[1 3]].map { |ids| Castellan::Serialize::Blanks.new("a1a1a*", [0, 0], ids) }
    known = Castellan.keeper.known_values("key", [["User", 1], 1])
    assert_same known, Castellan.keeper.known_values("key", [["User", 1], 1])
    assert_equal [%w[1 2], %w[1 3], %w[1 2]], [blanks[0], blanks[1], blanks[0]].map { |of| known.values(of) { of.ids } }
    assert_equal %w[1 2], known.values(blanks[0]) { flunk "they are known" }
  end

  def test_what_the_application_sets_for_a_request_is_in_the_key
    around = {
      "zone" => ->(request) { Time.use_zone("Hawaii", &request) },
      "locale" => ->(request) { I18n.with_locale(:de, &request) },
      "scope" => ->(request) { Letter.where(id: 1).scoping(&request) },
      "every query" => ->(request) { Letter.where(id: 1).scoping(all_queries: true, &request) },
      "escaping" => ->(request) { with_plain_html(&request) }
    }
    I18n.available_locales = %i[en de]
    2.times do
      around.each do |name, set|
        PATHS.each do |path|
          assert_same_as_rendered(path, 1)
          set.call(-> { assert_same_as_rendered(path, 1, name: name) })
        end
      end
    end
  ensure
    I18n.available_locales = nil
  end

  def test_links_are_those_of_where_the_application_is_mounted
    ["", "/v1", "/v2"].each { |name| 2.times { assert_same_as_rendered("letters?page[number]=2", 1, "SCRIPT_NAME" => name) } }
    refute_equal(*["/v1", "/v2"].map { |name| get("letters", "SCRIPT_NAME" => name).last })
  end

  def test_a_write_is_seen_by_the_next_request
    PATHS.each { |path| 2.times { get(path) } }
    Letter.where(id: 2).update_all(title: "Written")
    Author.where(id: 2).update_all(name: "Renamed")
    PATHS.each { |path| assert_same_as_rendered(path, 1) }
    assert_includes get("letters").last, "Written"
    Letter.where(id: 2).delete_all
    assert_equal [404, 404], [get("letters/2"), get("own/2", viewer: 2)].map(&:first)
  end

  # Each such request has an endpoint of its own, with the record whose relationship it is.
  def test_a_request_for_related_resources_leaves_nothing_in_memory
    app = Castellan.app { [SignedResource, SignerResource].each { |one| resource one } }
    count = lambda do |times|
      times.times { |number| assert_equal 200, Rack::MockRequest.new(app).get("/#{%w[signed/2/author signers/2/signed][number % 2]}").status }
      GC.start
      ObjectSpace.each_object(Castellan::Serve::Endpoint).count
    end
    before = count.call(4)
    assert_operator count.call(60), :<, before + 20
  end

  def test_neither_another_keeper_nor_another_revision_is_hit
    get("letters")
    Castellan.keeper.renew_revision
    assert_equal 1, renderings { get("letters") }
    Castellan.keep(store: Castellan::Store::NullStore.new, versions: @versions)
    assert_equal 2, renderings { 2.times { get("letters") } }
    Castellan.keeper = nil
    assert_equal 2, renderings { 2.times { get("letters") } }
  end

  def test_nothing_is_noted_for_a_query_that_is_too_long_to_be_known_again
    count = -> { ObjectSpace.each_object(Castellan::Keeper::RequestKey).count }
    long = "letters?sort=title#{"&" * 1_000}"
    GC.start
    GC.disable
    before = count.call
    2.times { assert_same_as_rendered(long, 1) }
    assert_equal 200, get(long).first
    assert_equal before, count.call
    get("letters?sort=title")
    assert_equal before + 1, count.call
  ensure
    GC.enable
  end

  def test_what_was_evicted_is_rendered
    store = Castellan::Store::MemoryStore.new
    Castellan.keep(store: store, versions: @versions)
    [1, 4].each do |times|
      times.times { get("letters") }
      store.clear
      assert_equal [1, 0], [renderings { get("letters") }, renderings { get("letters") }]
    end
    expired = Castellan::Clock.monotonic_ns + (61 * 1_000_000_000)
    Castellan.keep(store: Castellan::Store::TieredStore.new(store, Castellan::Store::MemoryStore.new), versions: @versions)
    before = Array.new(4) { get("letters") }.last
    Castellan::Clock.stub(:monotonic_ns, expired) { assert_equal before, get("letters") }
  end

  def test_a_model_that_replaces_all_is_asked_each_time
    @app = Castellan.app { resource ChosenResource }
    [1, 2, 1, 2].each do |id|
      ChosenLetter.chosen = id
      assert_equal [id.to_s], JSON.parse(get("chosen").last)["data"].map { |letter| letter["id"] }
    end
  end

  def test_cache_status_shows_whether_the_document_was_in_the_store
    assert_nil get("letters")[1]["cache-status"], "off by default"
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: @versions)
    plain = Class.new(LetterResource) { type "plain" }
    @app = Castellan.app do
      cache_status true
      [LetterResource, plain].each { |resource| resource resource }
    end
    status = ->(path, **fields) { get(path, **fields)[1]["cache-status"] }
    assert_equal ["Castellan; fwd=miss; stored", "Castellan; hit"], Array.new(2) { status.call("letters") }
    assert_equal "Castellan; hit", Castellan::Recording.open(Watcher.new) { status.call("letters") }
    assert_equal "Castellan; hit", status.call("letters", "HTTP_IF_NONE_MATCH" => get("letters")[1]["etag"])
    assert_nil status.call("plain"), "a class without a name is not kept"
    assert_nil status.call("letters/99")
  end

  def test_cache_status_does_not_claim_that_a_document_is_stored_if_the_store_did_not_take_it
    Castellan.keep(store: Castellan::Store::NullStore.new, versions: @versions)
    @app = Castellan.app do
      cache_status true
      resource LetterResource
    end
    assert_equal ["Castellan; fwd=miss"] * 2, Array.new(2) { get("letters")[1]["cache-status"] }
    assert_equal "Castellan; fwd=miss", get("letters", "HTTP_ACCEPT_ENCODING" => "gzip")[1]["cache-status"]
  end

  def test_a_document_with_values_of_a_viewer_has_no_field_for_cdns
    @app = Castellan.app do
      resource CdnResource
      resource VersionedCdnResource
    end
    (%w[cdn versioned-cdn] * 4).each do |path|
      headers = get(path)[1]
      assert_equal ["private, max-age=60", nil], headers.values_at("cache-control", "cdn-cache-control"), path
      assert_nil get(path, "HTTP_IF_NONE_MATCH" => headers["etag"])[1]["cdn-cache-control"], path
    end
  end

  def test_a_hit_reads_one_version
    long = "gzip#{", x-coding" * 20}"
    stores = [Castellan::Store::MemoryStore.new, ActiveSupport::Cache::MemoryStore.new]
    stores.each do |store|
      Castellan.keep(store: store, versions: @versions)
      [nil, "gzip", long].product(["", "/v1"]).each do |coding, mount|
        request = -> { get("letters", "HTTP_ACCEPT_ENCODING" => coding, "SCRIPT_NAME" => mount) }
        3.times { request.call }
        assert_equal 1, versions_read(request), [store.class, coding, mount]
      end
    end
  end

  def test_so_does_a_hit_that_a_repeat_cannot_answer
    I18n.available_locales = %i[en de]
    MarkedResource.asked = 0
    { "letters" => 1, "flagged" => 1, "local" => 1, "marked" => 2 }.each do |path, count|
      [nil, '"other"', 'W/"other", "another"'].each do |tags|
        requests = [1, 2].map { |viewer| -> { with_locale(viewer) { get(path, viewer: viewer, "HTTP_IF_NONE_MATCH" => tags) } } }
        4.times { requests.each(&:call) }
        assert_equal [count] * 4, (requests * 2).map { |request| versions_read(request) }, [path, tags]
      end
    end
  ensure
    I18n.available_locales = nil
  end

  def test_headers_of_a_response_belong_to_it
    2.times { get("letters")[1].merge!("etag" => "changed", "cache-control" => "changed") }
    assert_same_as_rendered("letters", 1)
  end

  private

  def tables
    Record.connection.create_table(:authors) { |table| table.string(:name) && table.datetime(:created_at) }
    Record.connection.create_table(:letters) do |table|
      table.string :title
      table.integer :viewer_id, :author_id
      table.datetime :sent_at
    end
    Record.connection.create_table(:marks, id: false) { |table| table.integer(:viewer_id) && table.integer(:letter_id) }
    Author.table_name = "authors"
    Letter.table_name = ChosenLetter.table_name = "letters"
  end

  def fill
    Author.insert_all!((1..3).map { |id| { id: id, name: "Author <#{id}>", created_at: Time.at(id) } })
    Letter.insert_all!((1..8).map { |id|
      { id: id, title: "Title #{id}", viewer_id: 1 + (id % 2), author_id: 1 + (id % 3), sent_at: Time.at(id) }
    })
  end

  def app
    public = Castellan.app { resource LetterResource, at: "letters" }
    private = Castellan.app do
      authenticate { |env| env["viewer"] }
      RESOURCES.drop(1).each { |resource| resource resource }
      resource LetterResource, at: "own", scope: ->(viewer) { Letter.where(viewer_id: viewer) }
    end
    ->(env) { (env["PATH_INFO"].start_with?("/letters") ? public : private).call(env) }
  end

  def env(path, viewer, fields)
    Rack::MockRequest.env_for("/#{path.gsub(" ", "%20")}", { "viewer" => viewer, **fields.compact })
  end

  def get(path, viewer: 1, **fields)
    status, headers, body = @app.call(env(path, viewer, fields))
    [status, headers, body.to_enum(:each).to_a.join.b]
  end

  def versions_read(request)
    asked = 0
    current = @versions.method(:current)
    @versions.stub(:current, ->(*list) { (asked += 1) && current.call(*list) }) { request.call }
    asked
  end

  def with_locale(viewer, &) = I18n.with_locale(viewer == 1 ? :en : :de, &)

  # @return [Array<Boolean>] the values of the first page
  def own(viewer, coding = nil, type: "noted")
    body = get(type, "HTTP_ACCEPT_ENCODING" => coding, viewer: viewer).last
    body = Zlib.gunzip(body) if coding
    JSON.parse(body)["data"].map { |letter| letter["attributes"]["own"] }
  end

  def assert_same_as_rendered(path, viewer, name: nil, **fields)
    expected = Castellan::Recording.open(Watcher.new) { get(path, viewer: viewer, **fields) }
    assert_equal expected, get(path, viewer: viewer, **fields), [path, viewer, fields, name].inspect
    assert_equal expected, get(path, viewer: viewer, **fields), [path, viewer, fields, name].inspect
  end

  def renderings(&block)
    count = 0
    trace = TracePoint.new(:call) { |call| count += 1 if call.method_id == :initialize && call.defined_class == Castellan::Document::Rendering }
    trace.enable(&block)
    count
  end

  def with_plain_html
    before = ActiveSupport::JSON::Encoding.escape_html_entities_in_json
    ActiveSupport::JSON::Encoding.escape_html_entities_in_json = !before
    yield
  ensure
    ActiveSupport::JSON::Encoding.escape_html_entities_in_json = before
  end
end
