# frozen_string_literal: true

require "test_helper"
require "support/cache_rows"

# RFC 9111 §3: which responses are stored, and which of their fields.
class HTTPCacheStoringTest < Minitest::Test
  extend Castellan::CacheRows

  FRESH = { "cache-control" => "max-age=60" }.freeze
  MODIFIED = ->(world) { { "last-modified" => world.date(-100_000), "date" => world.date } }
  HEURISTIC = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].freeze
  OTHERS = [201, 202, 302, 303, 307, 400, 401, 403, 406, 409, 418, 451, 500, 502, 503, 504, 299, 399, 499, 599].freeze

  rows "RFC 9110 §15.1",
       *HEURISTIC.map { |status| ["#{status} is stored by a heuristic", MODIFIED, :hit, { status: status }] },
       *OTHERS.map { |status| ["#{status} is not stored by a heuristic", MODIFIED, :miss, { status: status }] },
       *OTHERS.map { |status| ["#{status} is stored with explicit freshness", FRESH, :hit, { status: status }] }

  rows "RFC 9111 §3",
       ["GET with max-age is stored", FRESH, :hit],
       ["a response without any freshness is not stored", {}, :miss],
       ["public alone with Last-Modified is stored", ->(world) { MODIFIED.call(world).merge("cache-control" => "public") }, :hit,
        { status: 302 }],
       ["public alone without a validator is useless", { "cache-control" => "public" }, :miss],
       ["206 is not stored", { "cache-control" => "max-age=60", "content-range" => "bytes 0-6/20" }, :miss, { status: 206 }],
       ["416 is not stored", FRESH, :miss, { status: 416 }],
       ["412 is not stored", FRESH, :miss, { status: 412 }],
       ["407 is not stored without its Proxy-Authenticate", FRESH, :miss, { status: 407 }],
       *[428, 429, 431, 511].map { |status|
         ["#{status} is not stored (RFC 6585)", { "cache-control" => "public, max-age=60" }, :miss, { status: status }]
       },
       ["HEAD is stored", FRESH, :hit, { method: "HEAD" }],
       *%w[POST PUT PATCH DELETE OPTIONS PROPFIND REPORT SEARCH QUERY FOO].map { |name|
         ["#{name} is not answered from the cache", FRESH, :miss, { method: name }]
       },
       ["events are not stored", { "cache-control" => "max-age=60", "content-type" => "text/event-stream; charset=utf-8" }, :miss],
       ["too short content is not stored", { "cache-control" => "max-age=60", "content-length" => "7" }, :hit]

  rows "RFC 9111 §5.2.2.5",
       ["no-store is not stored", { "cache-control" => "max-age=60, no-store" }, :miss],
       ["NO-STORE is not stored", { "cache-control" => "max-age=60, NO-STORE" }, :miss],
       ["no-store with an argument is not stored", { "cache-control" => "no-store=1, max-age=60" }, :miss],
       ["no-store in a second line is not stored", { "cache-control" => ["max-age=60", "no-store"] }, :miss],
       ["no-store after an unclosed quote is not stored", { "cache-control" => 'max-age=60, a="b, no-store' }, :miss],
       ["no-store within a quoted string is not a directive", { "cache-control" => 'a="b, no-store", max-age=60' }, :hit],
       ["a longer name is another directive", { "cache-control" => "no-stores, max-age=60" }, :hit]

  rows "RFC 9111 §5.2.1.5",
       ["a request's no-store is not stored", FRESH, :miss, { request: { "Cache-Control" => "no-store" }, second: {} }],
       ["a request's No-Store is not stored", FRESH, :miss, { request: { "Cache-Control" => "max-age=9, No-Store" }, second: {} }],
       ["a request's no-store counts without the others", FRESH, :miss,
        { request: { "Cache-Control" => "no-store" }, cache: { client_directives: false } }],
       ["no-store may be answered from the cache", FRESH, :hit, { second: { "Cache-Control" => "no-store" } }]

  rows "RFC 9111 §5.2.2.7",
       ["private is not stored", { "cache-control" => "private, max-age=60" }, :miss],
       ["Private is not stored", { "cache-control" => "Private, max-age=60" }, :miss],
       ["private beside public is not stored", { "cache-control" => "public, private, max-age=60" }, :miss],
       ["private with s-maxage is not stored", { "cache-control" => "private, s-maxage=60" }, :miss],
       ["private with an empty argument is not stored", { "cache-control" => 'private="", max-age=60' }, :miss],
       ["private with junk is not stored", { "cache-control" => "private x, max-age=60" }, :miss],
       *["private; max-age=60", 'max-age=60, private="x-user', "max-age=60, private='x-user'", 'max-age=60, private= "x-user"',
         "max-age=60, private=[x-user]", "max-age=60, private:x", '"private", max-age=60', "[private], max-age=60", '"private, max-age=60"',
         "max-age=60, 'private'", "max-age=60, no-store;", "max-age=60, no-store:", 'max-age=60, "no-store"'].map { |value|
         ["malformed and not stored: #{value}", ->(world) { MODIFIED.call(world).merge("cache-control" => value) }, :miss]
       },
       *["max-age=60; private", "max-age=60;private", "max-age=60 private", "public; private, max-age=60", "public private, max-age=60",
         "max-age=60, public; no-store", "max-age=60, a=b no-store", "max-age=60, a; x-private; private"].map { |value|
         ["malformed after a name and not stored: #{value}", { "cache-control" => value, "etag" => '"a"' }, :miss]
       },
       *["max-age=60, x-private; no-stores", 'max-age=60, a="b; private"', "max-age=60, a=private"].map { |value|
         ["part of a longer name or of an argument: #{value}", { "cache-control" => value }, :hit]
       },
       *%w[content-encoding content-type date].map { |name|
         ["a response is not stored without its #{name}", { "cache-control" => "max-age=60, no-cache=\"#{name}\"", "etag" => '"a"' }, :miss]
       },
       ["malformed, and so without a heuristic", ->(world) { MODIFIED.call(world).merge("cache-control" => "max_age 60;") }, :miss],
       ["private of a field and of all is not stored", { "cache-control" => 'private="x-a", private, max-age=60' }, :miss],
       ["private of a field is stored without it", { "cache-control" => 'max-age=60, private="X-A"', "x-a" => "1", "x-b" => "2" }, :hit,
        { with: ->(test, first, second) { test.assert_equal [%w[1 2], [nil, "2"]], [first, second].map { |r| [r["x-a"], r["x-b"]] } } }],
       ["private of a token is stored without the field", { "cache-control" => "max-age=60, private=x-a", "x-a" => "1" }, :hit,
        { with: ->(test, _, second) { test.assert_nil second["x-a"] } }]

  rows "RFC 9111 §5.2.2.3",
       ["must-understand of a known status ignores no-store", { "cache-control" => "max-age=60, must-understand, no-store" }, :hit],
       ["must-understand of an unknown status is not stored", { "cache-control" => "max-age=60, must-understand" }, :miss, { status: 299 }],
       ["must-understand of a 4xx that nobody knows is not stored", { "cache-control" => "max-age=60, must-understand" }, :miss,
        { status: 499 }]

  rows "RFC 9111 §3.5",
       ["Authorization is not stored", FRESH, :miss, { request: { "Authorization" => "Basic x" } }],
       ["Authorization with public is stored", { "cache-control" => "public, max-age=60" }, :hit,
        { request: { "Authorization" => "Basic x" } }],
       ["Authorization with s-maxage is stored", { "cache-control" => "s-maxage=60" }, :hit, { request: { "Authorization" => "Basic x" } }],
       ["Authorization with must-revalidate is stored", { "cache-control" => "must-revalidate, max-age=60" }, :hit,
        { request: { "Authorization" => "Basic x" } }],
       ["proxy-revalidate does not permit Authorization", { "cache-control" => "proxy-revalidate, max-age=60" }, :miss,
        { request: { "Authorization" => "Basic x" } }],
       ["what was stored for nobody is not used with Authorization", FRESH, :miss, { second: { "Authorization" => "Basic x" } }],
       ["public is used with other credentials", { "cache-control" => "public, max-age=60" }, :hit,
        { request: { "Authorization" => "Basic x" }, second: { "Authorization" => "Basic y" } }]

  rows "RFC 9111 §7.3",
       ["Set-Cookie is not stored", { "cache-control" => "max-age=60", "set-cookie" => "a=1" }, :miss],
       ["Set-Cookie is not stored with public", { "cache-control" => "public, max-age=60", "set-cookie" => "a=1" }, :miss],
       ["Set-Cookie is stored with public where the cache says explicit",
        { "cache-control" => "public, max-age=60", "set-cookie" => ["a=1", "b=2"] }, :hit,
        { cache: { set_cookie: :explicit }, with: ->(test, _, second) { test.assert_equal %w[a=1 b=2], second.headers["set-cookie"] } }],
       ["Set-Cookie is not stored without public where the cache says explicit",
        { "cache-control" => "max-age=60", "set-cookie" => "a=1" }, :miss, { cache: { set_cookie: :explicit } }],
       ["Set-Cookie that no-cache names is stripped", { "cache-control" => 'max-age=60, no-cache="set-cookie"', "set-cookie" => "a=1" },
        :hit,
        { with: ->(test, first, second) { test.assert_equal ["a=1", nil], [first["set-cookie"], second["set-cookie"]] } }],
       ["a heuristic does not store what a cookie asked for", MODIFIED, :miss, { request: { "Cookie" => "session=1" } }],
       ["a heuristic is not used for a cookie", MODIFIED, :miss, { second: { "Cookie" => "session=1" } }],
       *%w[X-Api-Key X-Auth-Token X-Authorization X-Forwarded-User X-Forwarded-Client-Cert
           Cf-Access-Jwt-Assertion Proxy-Authorization].map { |name|
         ["a heuristic does not store what #{name} asked for", MODIFIED, :miss, { request: { name => "1" } }]
       },
       ["explicit freshness is stored for a cookie", FRESH, :hit, { request: { "Cookie" => "session=1" } }]

  # The session that the application leaves in the environment, options of the cache, whether the second reader gets the response.
  Session = Struct.new(:loaded?)
  LazyBody = Struct.new(:use) do
    def each(&) = to_ary.each(&)
    def to_ary = use.call && ["ada"]
  end
  {
    "used" => [Session.new(true), {}, false], "not read" => [Session.new(false), {}, true], "a Hash, as Roda makes it" => [{}, {}, false],
    "used where the cache says explicit" => [Session.new(true), { set_cookie: :explicit }, true]
  }.each do |name, (session, options, hit)|
    define_method("test_a session that is #{name} #{"keeps the response private" unless hit}") do
      world = Castellan::CachedApplication.new(**options) do |env|
        env["rack.session"] = session
        [200, { "cache-control" => "public, max-age=60", "etag" => '"a"' }, env["REQUEST_METHOD"] == "HEAD" ? [] : ["hello"]]
      end
      first = [world.get, world.head("/head")]
      assert_equal [[false, false], [hit, hit]], [first, [world.get, world.head("/head")]].map { |answers| answers.map(&:hit?) }
    end
  end

  def test_a_streamed_body_that_uses_the_session_keeps_the_response_private
    world = Castellan::CachedApplication.new do |env|
      env["rack.session"] = session = Session.new(false)
      body = Enumerator.new { |chunks| (session[:loaded?] = true) && chunks << "ada" }
      [200, { "cache-control" => "public, max-age=60" }, body]
    end
    refute_predicate Array.new(2) { world.get }.last, :hit?
  end

  def test_with_vary_cookie_the_response_of_a_session_is_its_own
    world = Castellan::CachedApplication.new do |env|
      env["rack.session"] = Session.new(true)
      [200, { "cache-control" => "public, max-age=60", "vary" => "Cookie" }, [env["HTTP_COOKIE"]]]
    end
    answers = %w[a=1 a=1 a=2].map { |cookie| world.get("/", { "Cookie" => cookie }) }
    assert_equal [["a=1", false], ["a=1", true], ["a=2", false]], answers.map { |answer| [answer.body, answer.hit?] }
  end

  def test_a_304_after_the_session_was_read_keeps_the_response_for_all
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "public, max-age=60", "etag" => '"a"' }, ["hello"]] }
    world.get
    world.later(70)
    world.answer { |env| (env["rack.session"] = Session.new(true)) && [304, { "etag" => '"a"', "x-user" => "ada" }, []] }
    assert_equal [200, "hello", "ada"], world.get.then { |answer| [answer.status, answer.body, answer["x-user"]] }
    assert_equal [true, nil], world.get.then { |answer| [answer.hit?, answer["x-user"]] }
  end

  # As Rails' template for Content-Security-Policy does; the id is the value of the cookie.
  def test_a_nonce_that_is_the_id_of_the_session_keeps_the_response_private
    session = Struct.new(:loaded?, :id).new(false, "secret")
    hits = ["secret", "random", nil].map do |nonce|
      world = Castellan::CachedApplication.new do |env|
        env.merge!("rack.session" => session, "action_dispatch.content_security_policy_nonce" => nonce)
        [200, { "cache-control" => "public, max-age=60", "content-security-policy" => "script-src 'nonce-#{nonce}'" }, ["hello"]]
      end
      Array.new(2) { world.get }.last.hit?
    end
    assert_equal [false, true, true], hits
  end

  def test_a_body_that_uses_the_session_when_it_is_read_keeps_the_response_private
    world = Castellan::CachedApplication.new do |env|
      env["rack.session"] = session = Session.new(false)
      [200, { "cache-control" => "public, max-age=60" }, LazyBody.new(-> { session[:loaded?] = true })]
    end
    assert_equal ["ada", false], Array.new(2) { world.get }.last.then { |answer| [answer.body, answer.hit?] }
  end

  KEPT = { "x-unknown" => "1", "content-type" => "text/plain", "content-language" => "de", "server" => "x", "link" => ["<a>", "<b>"],
           "cache-status" => "Inner; hit" }.freeze
  DROPPED = %w[connection keep-alive proxy-connection proxy-authenticate proxy-authentication-info proxy-authorization te
               trailer upgrade x-listed].freeze

  rows "RFC 9111 §3.1",
       *KEPT.map { |name, value|
         ["#{name} is stored", { "cache-control" => "max-age=60", name => value }, :hit,
          { with: ->(test, _, second) { test.assert_includes second[name], Array(value).join(", ") } }]
       },
       *DROPPED.map { |name|
         ["#{name} is not stored", { "cache-control" => "max-age=60", "connection" => "close, X-Listed", name => "x-listed" }, :hit,
          { with: ->(test, _, second) { test.assert_nil second[name] } }]
       }

  # Servers call to_s.
  def test_field_values_that_are_no_strings_are_stored_as_they_are_sent
    fields = { "x-flag" => true, "x-counts" => [1, 2], "content-location" => URI("http://example.org/a"), "x-count" => 3 }
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.merge(fields), ["x"]] })
    sent = Array.new(2) { cache.call(Rack::MockRequest.env_for("http://example.org/"))[1].slice(*fields.keys) }
    assert_equal(sent.first.transform_values { |value| value.is_a?(Array) ? value.map(&:to_s) : value.to_s }, sent.last)
  end

  def test_a_middleware_that_changes_a_field_changes_no_other_response
    [{}, { "HTTP_IF_NONE_MATCH" => '"a"' }].each do |condition|
      cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.merge("etag" => '"a"', "vary" => +"accept", "x-list" => [+"a"]), ["x"]] })
      vary = Array.new(3) do |index|
        _, headers, = cache.call(Rack::MockRequest.env_for("http://example.org/", index.zero? ? {} : condition))
        headers.values_at("vary", "x-list").flatten.tap { |values| values.each { |value| value << ", origin" unless value.frozen? } }
      end
      assert_equal ["accept, origin", "a, origin"], vary.first
      assert_equal [%w[accept a]], vary.drop(1).uniq
    end
  end

  # As Rails sends it: a server takes the length from the path.
  def test_a_file_without_content_length_gets_one
    body = Class.new do
      def to_path = __FILE__
      def each = yield(File.binread(__FILE__))
    end
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, body.new] })
    lengths = Array.new(2) do
      _, headers, sent = cache.call(Rack::MockRequest.env_for("http://example.org/"))
      sent.each { |chunk| chunk }
      headers["content-length"]
    end
    assert_equal [File.size(__FILE__).to_s] * 2, lengths
  end

  # A body with Transfer-Encoding is encoded already.
  def test_a_chunked_body_passes_untouched
    body = Class.new { def each = yield("7\r\ncontent\r\n0\r\n\r\n") }.new
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.merge("transfer-encoding" => "chunked"), body] })
    2.times do
      _, headers, sent = cache.call(Rack::MockRequest.env_for("http://example.org/"))
      assert_equal ["chunked", "Castellan; fwd=uri-miss"], headers.values_at("transfer-encoding", "cache-status")
      assert_same body, sent
    end
  end

  def test_incomplete_content_is_passed_and_not_stored
    world = Castellan::CachedApplication.new
    answers = [[200, FRESH.merge("content-length" => "20"), ["short"]]]
    cache = Castellan::HTTPCache.new(->(_env) { answers.first }, clock: world)
    2.times do
      status, headers, body = cache.call(Rack::MockRequest.env_for("http://example.org/"))
      assert_equal [200, ["short"], "Castellan; fwd=uri-miss"], [status, body, headers["cache-status"]]
    end
  end

  def test_content_longer_than_max_body_is_passed_and_its_path_kept
    file = Class.new do
      def each = yield("x" * 11)
      def to_path = __FILE__
    end.new
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, file] }, max_body: 10)
    2.times do
      status, headers, body = cache.call(Rack::MockRequest.env_for("http://example.org/"))
      assert_equal [200, "Castellan; fwd=uri-miss"], [status, headers["cache-status"]]
      assert_same file, body
    end
  end

  # Copying a long body would double the memory of the request.
  def test_a_body_in_memory_longer_than_max_body_is_not_copied
    chunks = ["x" * 6, "y" * 5]
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, chunks] }, max_body: 10)
    _status, headers, body = cache.call(Rack::MockRequest.env_for("http://example.org/"))
    assert_nil headers["cache-status"][/stored/]
    assert_equal chunks.map(&:object_id), body.to_ary.map(&:object_id)
  end

  def test_a_date_is_added_where_it_is_missing_or_invalid
    [{}, { "date" => "yesterday" }].each do |fields|
      world = Castellan::CachedApplication.new { [200, FRESH.merge(fields), ["x"]] }
      expected = world.date
      assert_equal expected, world.get["date"]
      world.later(5)
      assert_equal [expected, 5], [world.get["date"], world.get.age]
    end
  end

  # RFC 9110 §6.6.1
  def test_a_date_is_added_to_every_response_that_has_none
    world = Castellan::CachedApplication.new do |env|
      [200, env["HTTP_DATED"] ? { "date" => world.date(-9) } : {}, []]
    end
    requests = [["POST"], ["HEAD"], ["GET", "/", {}, { input: "fat" }],
                ["GET", "/", { "Cache-Control" => "only-if-cached" }]]
    requests.each do |name, path, fields, options|
      assert_equal world.date, world.call(name, path || "/", fields || {}, **(options || {}))["date"], name
    end
    assert_equal world.date(-9), world.post("/", { "Dated" => "1" })["date"]
  end

  def test_numbers_in_fields_are_strings
    fields = { "cache-control" => "max-age=60", "age" => 7, "content-length" => 1 }
    cache = Castellan::HTTPCache.new(->(_env) { [200, fields.dup, ["x"]] }) # Rack::Lint refuses numbers
    headers = Array.new(2) { cache.call(Rack::MockRequest.env_for("http://example.org/"))[1] }.last
    assert_equal %w[7 1], headers.values_at("age", "content-length")
  end

  def test_capital_field_names_of_old_applications_are_read
    cache = Castellan::HTTPCache.new(->(_env) { [200, { "Cache-Control" => "private, max-age=60", "Set-Cookie" => "a=1\nb=2" }, ["x"]] })
    2.times do
      headers = cache.call(Rack::MockRequest.env_for("http://example.org/"))[1]
      assert_equal ["Castellan; fwd=uri-miss", %w[a=1 b=2]], [headers["cache-status"], headers["set-cookie"]]
    end
  end

  # Cache-Control, other fields, seconds that the store keeps the response
  [
    ["max-age=60", {}, 60 + 600], ["max-age=60", { "etag" => '"a"' }, 60 + 86_400], ["max-age=60", { "age" => "20" }, 40 + 600],
    ["max-age=60, stale-while-revalidate=100000", { "etag" => '"a"' }, 60 + 100_000], ["no-cache", { "etag" => '"a"' }, 86_400]
  ].each do |control, fields, seconds|
    define_method("test_#{control} with #{fields.inspect} is kept for #{seconds} seconds") do
      store = Castellan::Store::MemoryStore.new
      kept = []
      store.define_singleton_method(:write_multi) { |entries, ttl: nil, **options| super(entries, ttl: ttl.tap { kept << ttl }, **options) }
      Castellan::CachedApplication.new(store: store) { [200, { "cache-control" => control, **fields }, ["x"]] }.get
      assert_equal [seconds], kept.map(&:round)
    end
  end

  # Without Rack::Lint, which refuses these.
  def test_a_response_with_a_wrong_length_is_not_stored
    { "7abc" => 2, %w[7 7] => 2, %w[7 8] => 2, "9" => 2, "1" => 2, "7" => 1, ["7"] => 1 }.each do |length, requests|
      calls = 0
      cache = Castellan::HTTPCache.new(lambda { |_env|
        calls += 1
        [200, { "cache-control" => "max-age=60", "content-length" => length }, ["content"]]
      })
      2.times { cache.call(Rack::MockRequest.env_for("/")) }
      assert_equal requests, calls, length
    end
  end

  def test_a_fat_get_is_passed_and_never_stored
    world = Castellan::CachedApplication.new { [200, FRESH.dup, ["x"]] }
    fat = world.get("/", {}, input: "poison")
    assert_equal "Castellan; fwd=bypass", fat.note
    assert_equal "Castellan; fwd=uri-miss; stored", world.get.note
    assert_equal "Castellan; fwd=bypass", world.get("/", {}, input: "poison").note
  end
end
