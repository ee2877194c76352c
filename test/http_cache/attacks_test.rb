# frozen_string_literal: true

require "test_helper"
require "rack"
require "support/cached_application"

# Published attacks on caches; each is refused, or changes nothing for other clients.
class HTTPCacheAttacksTest < Minitest::Test
  FRESH = { "cache-control" => "max-age=60" }.freeze

  # A path that looks like a file is stored because of header fields alone.
  def test_web_cache_deception_omer_gil_2017
    world = Castellan::CachedApplication.new { [200, { "content-type" => "text/html", "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT" }, ["my account"]] }
    ["/account/x.css", "/account;x.js", "/account%2fx.png", "/account?x.css", "/static/..%2faccount"].each do |path|
      world.get(path, { "Cookie" => "session=victim" })
      assert_equal "Castellan; fwd=uri-miss", world.get(path, { "Cookie" => "session=victim" }).note, path
    end
  end

  # Unkeyed request fields that frameworks build URLs from.
  %w[X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Port X-Forwarded-Scheme X-Forwarded-Ssl X-Forwarded-Server X-Forwarded-Prefix
     X-Host X-Original-Host X-Original-URL X-Rewrite-URL Forwarded X-HTTP-Method-Override X-HTTP-Method X-Method-Override
     Front-End-Https X-URL-Scheme Turbo-Frame HX-Request].each do |name|
    define_method("test_web_cache_poisoning_kettle_2018_by_#{name}") do
      world = Castellan::CachedApplication.new { |env| [200, FRESH.dup, [env["HTTP_#{name.upcase.tr("-", "_")}"] || "clean"]] }
      poison = { name => name == "Forwarded" ? "host=evil.org" : "evil.org" }
      2.times { assert_includes world.get("/", poison).body, "evil.org" }
      assert_equal "clean", world.get.body
      assert_includes world.get("/", poison).body, "evil.org"
      assert_equal [true, "clean"], [(again = world.get).hit?, again.body]
      assert_equal 2, world.requests.size
    end
  end

  def test_web_cache_entanglement_kettle_2020_by_the_port_and_the_case_of_the_host
    world = Castellan::CachedApplication.new { |env| [200, FRESH.dup, [env["HTTP_HOST"]]] }
    %w[example.org example.org:1337 EXAMPLE.org example.org:80 example.org: a.example.org].each do |host|
      2.times { assert_equal host, world.get("/", {}, env: { "HTTP_HOST" => host }).body }
    end
  end

  # Host, path, the URL that they look like
  [
    ["example.org/a", "/b", "/a/b"], ["example.org/a?", "/b", "/a?/b"], ["example.org/a#", "/b", "/a#/b"]
  ].each do |host, path, url|
    define_method("test_the host #{host} does not poison #{url}") do
      # Without Rack::Lint, which refuses such a Host.
      cache = Castellan::HTTPCache.new(->(env) { [200, FRESH.dup, [env["PATH_INFO"]]] })
      read = lambda do |name, at|
        cache.call(Rack::MockRequest.env_for("http://example.org#{at}", "HTTP_HOST" => name))[2]
      end
      2.times { assert_equal ["/b"], read.call(host, path) }
      assert_equal [url[/[^?#]+/]], read.call("example.org", url)
    end
  end

  # Servers differ in the encodings of what they read, and a client chooses the bytes.
  def test_the_encodings_of_a_path_and_a_query_do_not_count
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, ["x"]] })
    notes = [["/é", "a=é"], ["/é".b, "a=é"], ["/é", "a=é".b], ["/é".b, "a=é".b]].map do |path, query|
      env = Rack::MockRequest.env_for("http://example.org/")
      cache.call(env.merge("PATH_INFO" => path, "QUERY_STRING" => query))[1]["cache-status"]
    end
    assert_equal ["Castellan; fwd=uri-miss; stored", *["Castellan; hit; ttl=59"] * 3], notes
  end

  # Some servers decode the path before the application sees it.
  def test_a_decoded_path_is_not_the_path_with_a_query
    world = Castellan::CachedApplication.new { |env| [200, FRESH.dup, [env["PATH_INFO"]]] }
    assert_equal "/a?b=1", world.get("/", {}, env: { "PATH_INFO" => "/a?b=1" }).body
    assert_equal "/a", world.get("/a?b=1").body
  end

  def test_web_cache_entanglement_kettle_2020_by_a_fat_get
    world = Castellan::CachedApplication.new { |env| [200, FRESH.dup, [env["rack.input"]&.read.to_s]] }
    assert_equal "poison", world.get("/", {}, input: "poison").body
    assert_equal "", world.get.body
    assert_equal "poison", world.get("/", {}, input: "poison").body
  end

  # Like that of protocol-rack, which Falcon uses: of unknown size, and without Content-Length or Transfer-Encoding.
  class Stream
    def initialize(content = nil)
      @content = content
    end

    def read(*) = @content
    def empty? = @content.nil?
  end
  private_constant :Stream

  def test_web_cache_entanglement_kettle_2020_by_a_fat_get_of_unknown_size
    [StringIO.new("poison"), Stream.new("poison")].each do |input|
      cache = Castellan::HTTPCache.new(->(env) { [200, FRESH.dup, [env["rack.input"]&.read.to_s]] })
      get = ->(more) { cache.call(Rack::MockRequest.env_for("/").merge(more)).then { |_, fields, body| [body.join, fields["cache-status"]] } }
      assert_equal ["poison", "Castellan; fwd=bypass"], get["rack.input" => input]
      assert_equal "", get[{}].first
      assert_match(/; hit;/, get["rack.input" => Stream.new].last)
    end
  end

  def test_web_cache_entanglement_kettle_2020_by_the_query
    world = Castellan::CachedApplication.new { |env| [200, FRESH.dup, [env["QUERY_STRING"]]] }
    ["utm_content=x", "a=1&utm_content=x", "a=1;utm_content=x", "a=1", "a=%31", "A=1"].each do |query|
      2.times { assert_equal query, world.get("/?#{query}").body }
    end
  end

  def test_the_absolute_form_of_a_request_target_is_stored_apart
    world = Castellan::CachedApplication.new { |env| [200, FRESH.dup, [env["REQUEST_URI"].to_s]] }
    world.get("/", {}, env: { "REQUEST_URI" => "http://evil.org/" })
    assert_equal "/", world.get("/", {}, env: { "REQUEST_URI" => "/" }).body
  end

  def test_one_proxys_fields_become_the_uri_and_can_be_purged_by_it
    world = Castellan::CachedApplication.new { [200, FRESH.dup, ["x"]] }
    fields = { "X-Forwarded-Proto" => "https", "X-Forwarded-Port" => "443", "X-Forwarded-For" => "192.0.2.1" }
    world.get("/a", fields)
    assert_predicate world.get("/a", fields.merge("X-Forwarded-For" => "192.0.2.2")), :hit?
    world.cache.purge("https://example.org/a")
    refute_predicate world.get("/a", fields), :hit?
  end

  def test_forwarded_for_is_not_part_of_the_key
    world = Castellan::CachedApplication.new { [200, FRESH.dup, ["x"]] }
    world.get("/", { "Forwarded" => "for=192.0.2.1;proto=https;by=10.0.0.1" })
    assert_predicate world.get("/", { "Forwarded" => 'for="[2001:db8::1]:80";proto=https;by=10.0.0.2' }), :hit?
    refute_predicate world.get("/", { "Forwarded" => "for=192.0.2.1;proto=http" }), :hit?
    assert_equal true, world.cache.purge("https://example.org/")
    refute_predicate world.get("/", { "Forwarded" => "for=192.0.2.1;proto=https;by=10.0.0.1" }), :hit?
  end

  def test_the_host_of_forwarded_is_part_of_the_uri
    world = Castellan::CachedApplication.new { [200, FRESH.dup, ["x"]] }
    fields = { "Forwarded" => 'for=192.0.2.1;host="www.example.com";proto=https' }
    world.get("/a", fields)
    refute_predicate world.get("/a"), :hit?
    refute_predicate world.get("/a", {}, env: { "HTTP_HOST" => "www.example.com", "rack.url_scheme" => "https" }), :hit?
    assert_predicate world.get("/a", fields), :hit?
    world.cache.purge("https://www.example.com/a")
    refute_predicate world.get("/a", fields), :hit?
  end

  # Applications read these in different ways, so each is a context of its own.
  ['for="a\\";for=";host =evil.com;by=x', "for=192.0.2.9;host =evil.com", 'for="x;host=evil.com"',
   "for=1;host=evil.com, for=2"].each do |field|
    define_method("test_forwarded: #{field} poisons nothing") do
      world = Castellan::CachedApplication.new { |env| [200, FRESH.dup, [Rack::Request.new(env).base_url]] }
      world.get("/", { "Forwarded" => field })
      [{}, { "Forwarded" => "for=192.0.2.1" }, { "Forwarded" => "for=192.0.2.1, for=192.0.2.2" }].each do |fields|
        assert_equal "http://example.org", world.get("/", fields).body
      end
    end
  end

  def test_other_fields_beside_forwarded_stay_in_the_context
    world = Castellan::CachedApplication.new { [200, FRESH.dup, ["x"]] }
    fields = { "Forwarded" => "for=192.0.2.1;proto=https" }
    world.get("/", fields)
    refute_predicate world.get("/", { **fields, "X-Forwarded-Proto" => "https" }), :hit?
  end

  # Field of the request, fields of the response: inner middlewares take credentials out of the environment.
  [
    ["Authorization", FRESH], ["Cache-Control", FRESH],
    ["Accept-Language", { "vary" => "accept-language", **FRESH }],
    ["Cookie", { "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT" }]
  ].each do |name, fields|
    define_method("test_#{name} that the application deletes from the environment still counts") do
      world = Castellan::CachedApplication.new do |env|
        [200, fields.dup, [env.delete("HTTP_#{name.upcase.tr("-", "_")}") || "nobody"]]
      end
      assert_equal "no-store", world.get("/", { name => "no-store" }).body
      assert_equal ["nobody", false], [(answered = world.get).body, answered.hit?]
    end
  end

  # Errors that an attacker provokes with a header field are not stored for others.
  def test_cache_poisoned_denial_of_service_nguyen_2019
    [400, 404, 405, 413, 431, 501].each do |status|
      world = Castellan::CachedApplication.new { |env| env["HTTP_X_OVERSIZED"] ? [status, {}, ["error"]] : [200, FRESH.dup, ["fine"]] }
      assert_equal status, world.get("/", { "X-Oversized" => "x" * 8_000 }).status
      assert_equal %w[fine fine], [world.get.body, world.get("/", { "X-Oversized" => "x" }).body]
    end
  end

  # The set of tags is scanned once, without a copy for each of them (as in CVE-2024-26146 of Rack's own parsers).
  def test_thousands_of_tags_in_if_none_match_as_in_cve_2024_26146
    world = Castellan::CachedApplication.new { [200, { "etag" => '"a"', **FRESH }, ["x"]] }
    world.get
    tags = Array.new(5_000) { |number| "\"#{number}\"" }.join(", ")
    assert_equal [200, 304],
                 [world.get("/", { "If-None-Match" => tags }).status, world.get("/", { "If-None-Match" => "#{tags}, \"a\"" }).status]
    assert_equal 200, world.get("/", { "If-None-Match" => "\"#{"x" * 80_000}" }).status
  end

  # More ranges, or more bytes, than the content has: the field is ignored.
  def test_apache_killer_cve_2011_3192_and_rack_cve_2024_26141
    world = Castellan::CachedApplication.new { [200, FRESH.dup, ["0123456789"]] }
    world.get
    ["bytes=#{"0-," * 1_000}0-", "bytes=0-9,0-9", "bytes=#{(0..40).map { |n| "#{n}-#{n}" }.join(",")}", "bytes=-9,-9"].each do |range|
      answered = world.get("/", { "Range" => range })
      assert_equal [200, "0123456789"], [answered.status, answered.body], range[0, 40]
    end
  end

  def test_directives_of_any_length_are_parsed_once
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "#{"x=\"\\" * 20_000}, max-age=60" }, ["x"]] }
    2.times { assert_equal "x", world.get.body }
    assert_equal 200, world.get("/", { "Cache-Control" => "#{"max-stale," * 20_000}no-cache=\"" }).status
  end

  NAMES = %w[HTTP_HOST PATH_INFO QUERY_STRING SCRIPT_NAME REQUEST_URI HTTP_CACHE_CONTROL HTTP_PRAGMA
             HTTP_IF_NONE_MATCH HTTP_IF_MODIFIED_SINCE
             HTTP_RANGE HTTP_IF_RANGE HTTP_ACCEPT_ENCODING HTTP_ACCEPT HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PROTO HTTP_FORWARDED
             HTTP_UPGRADE CONTENT_LENGTH].freeze
  BYTES = ["\xFF", "é", "\x80\"", "*", "\"a\"", "W/", "bytes=", "0-1", ",", ";", "=", "\\", " ", "max-age", "\u0000", "[", "9" * 30,
           "gzip"].freeze

  # Fuzzed requests in both encodings that servers use: no request makes an exception.
  def test_bytes_of_any_kind_in_a_request_are_answered
    random = Random.new(Minitest.seed)
    fields = { "etag" => '"a"', "vary" => "accept-encoding, accept", "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT", **FRESH }
    application = ->(_env) { [200, fields.dup, ["x"]] }
    cache = Castellan::HTTPCache.new(application, cache_status: :debug)
    2_000.times do
      method = %w[GET GET GET HEAD POST].sample(random: random)
      env = Rack::MockRequest.env_for("http://example.org/", "HTTP_HOST" => "example.org", method: method)
      NAMES.sample(3, random: random).each do |name|
        text = Array.new(random.rand(1..4)) { BYTES.sample(random: random).b }.join
        env[name] = random.rand(2).zero? ? text : text.dup.force_encoding(Encoding::UTF_8)
      end
      assert_includes [200, 206, 304, 416, 504], cache.call(env).first, env.slice(*NAMES).inspect
    end
  end

  # The same of responses: what an application sends is passed.
  def test_bytes_of_any_kind_in_a_response_are_passed
    random = Random.new(Minitest.seed)
    names = %w[cache-control cdn-cache-control expires date age etag last-modified vary set-cookie location content-location connection
               cache-groups cache-group-invalidation surrogate-key xkey cache-tag content-length cache-status pragma]
    fields = {}
    cache = Castellan::HTTPCache.new(->(_env) { [200, fields.dup, ["x"]] })
    2_000.times do
      fields = names.sample(4, random: random).to_h do |name|
        text = Array.new(random.rand(1..4)) { BYTES.sample(random: random).b }.join
        [name, random.rand(2).zero? ? text : text.dup.force_encoding(Encoding::UTF_8)]
      end
      method = %w[GET GET POST].sample(random: random)
      2.times { assert_equal 200, cache.call(Rack::MockRequest.env_for("http://example.org/#{random.rand(50)}", method: method)).first, fields.inspect }
    end
  end

  # Whatever is in a shared store is input.
  def test_bytes_that_the_cache_did_not_write_are_a_miss
    store = Castellan::Store::MemoryStore.new
    world = Castellan::CachedApplication.new(store: store) { [200, FRESH.dup, ["x"]] }
    world.get
    key = "castellan:http:1:http://example.org/"
    good = store.read_multi([key])[key]
    ["", "CHR1", "CHI1", "CHX1", "CHI1\n\n", Marshal.dump({}), good[0..-2], "#{good}x", good.sub("200 ", "x "),
     good.tr("\n", ":")].each do |bytes|
      store.write_multi({ key => bytes })
      assert_equal [200, "x"], [(answered = world.get).status, answered.body], bytes[0, 20].inspect
    end
  end

  def test_the_bytes_of_another_key_and_changed_bytes_are_a_miss
    store = Castellan::Store::MemoryStore.new
    world = Castellan::CachedApplication.new(store: store) do |env|
      [200, { **FRESH, "vary" => env["PATH_INFO"].start_with?("/vary") ? "accept" : "" }, [env["PATH_INFO"], env["HTTP_ACCEPT"].to_s]]
    end
    requests = [["/a", {}], ["/b", {}], ["/vary", { "Accept" => "x" }], ["/vary", { "Accept" => "y" }], ["/vary/b", { "Accept" => "x" }]]
    honest = requests.map { |request| world.get(*request).body }
    kept = (store.instance_variable_get(:@probation).keys + store.instance_variable_get(:@protected).keys).uniq
    real = store.read_multi(kept)
    kept.permutation(2) do |to, from|
      store.write_multi(real.merge(to => real[from]))
      assert_equal honest, requests.map { |request| world.get(*request).body }, [to, from].inspect
    end
    kept.each do |key|
      store.write_multi(real.merge(key => real[key].dup.tap { |bytes| bytes.setbyte(-1, bytes.getbyte(-1) ^ 1) }))
      assert_equal honest, requests.map { |request| world.get(*request).body }, key
    end
  end

  def test_a_broken_store_is_a_miss_with_one_line
    broken = Class.new do
      %i[read_multi write_multi delete_multi increment compare_and_delete].each do |name|
        define_method(name) { |*, **| raise Castellan::StoreError, "away" }
      end
      def supports?(_feature) = false
    end.new
    lines = []
    world = Castellan::CachedApplication.new(store: broken, log: lines.method(:<<)) { [200, { "xkey" => "a", "etag" => '"a"', **FRESH }, ["x"]] }
    3.times { assert_equal [200, "x"], [world.get.status, world.post.body] }
    assert_equal 1, lines.size
  end
end
