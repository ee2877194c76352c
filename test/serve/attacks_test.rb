# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/mock_request"
require "document/library"

# Published attacks on cached documents; each is refused, or changes nothing for other clients.
class ServeAttacksTest < Minitest::Test
  PATH = "/articles?include=author"

  def setup
    @before = Castellan.keeper
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES)
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: @versions)
    models = library.models
    @app = Castellan.app do
      resource models::KeptArticleResource, at: "articles"
      resource models::PersonalArticleResource, at: "personal"
      authenticate { |_env| ->(ids) { ids } }
    end
  end

  def teardown
    Castellan.keeper = @before
    @versions.uninstall(Library::TABLES)
  end

  # A cache in front would store a path that looks like a file.
  def test_web_cache_deception_omer_gil_2017
    %w[/personal.css /personal/x.css /personal;x.js /personal%2fx.png /personal/1/x /static/..%2fpersonal /personal%00.js].each do |path|
      assert_includes 400..404, request(path).status, path
    end
    ["/personal", "/personal/", "/personal/1"].each { |path| assert_includes request(path)["cache-control"], "private", path }
  end

  # Request fields that frameworks build URLs from.
  %w[Host X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Port X-Forwarded-Prefix X-Original-URL X-Rewrite-URL Forwarded
     X-HTTP-Method-Override X-Method-Override].each do |name|
    define_method("test_web_cache_poisoning_kettle_2018_by_#{name}") do
      poison = { "HTTP_#{name.upcase.tr("-", "_")}" => name == "Forwarded" ? "host=evil.org" : "evil.org" }
      poisoned = request(PATH, poison)
      clean = request(PATH)
      assert_equal [200, poisoned.body, poisoned.headers], [clean.status, clean.body, clean.headers]
      refute_includes poisoned.body + poisoned.headers.inspect, "evil.org"
    end
  end

  # A body, and parameters in it, do not count.
  def test_web_cache_entanglement_kettle_2020_by_a_fat_get
    form = { "CONTENT_TYPE" => "application/x-www-form-urlencoded", :input => "page[size]=1&_method=DELETE&fields[articles]=title" }
    fat = request(PATH, form)
    assert_equal fat.body, request(PATH).body
    assert_equal request(PATH).body, request(PATH, form).body
  end

  # Every parameter is known, so none can be unkeyed.
  def test_web_cache_entanglement_kettle_2020_by_the_query
    ["&utm_content=x", ";include=", "&INCLUDE=tags", "&callback=x"].each do |more|
      2.times { assert_equal 400, request("#{PATH}#{more}").status, more }
    end
    assert_equal 200, request(PATH).status
  end

  # The fields in Vary choose among a few responses, whatever is in them.
  def test_vary_poisoning_stores_nothing_for_others
    request(PATH)
    before = request(PATH)
    ["evil", "gzip;q=2", "*;q=0", "br\u0000", "x" * 9_000, "identity;q=0, *;q=0"].each do |text|
      %w[HTTP_ACCEPT_ENCODING HTTP_ACCEPT HTTP_ACCEPT_LANGUAGE].each do |name|
        assert_includes [200, 400, 406], request(PATH, name => text).status, "#{name}: #{text[0, 20]}"
        assert_equal [before.body, before.headers], request(PATH).then { |after| [after.body, after.headers] }
      end
    end
  end

  # The time and the memory grow with the length of the field, not faster.
  def test_thousands_of_tags_in_if_none_match_as_in_cve_2024_26146
    etag = request(PATH)["etag"]
    tags = Array.new(20_000) { |number| "\"#{number}\"" }.join(", ")
    assert_equal [200, 304], [tags, "#{tags}, #{etag}"].map { |text| request(PATH, "HTTP_IF_NONE_MATCH" => text).status }
    allocated = [1_000, 2_000].map do |count|
      text = (["\"x\""] * count).join(", ")
      2.times { request(PATH, "HTTP_IF_NONE_MATCH" => text) }
      allocated_objects { request(PATH, "HTTP_IF_NONE_MATCH" => text) }
    end
    assert_operator allocated.last, :<, allocated.first * 2.1
  end

  private

  def library = Library.active_record(:sqlite)

  def request(path, env = {}) = Rack::MockRequest.new(@app).get(path, env)
end
