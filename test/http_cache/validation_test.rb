# frozen_string_literal: true

require "test_helper"
require "rack/conditional_get"
require "rack/deflater"
require "support/cache_rows"

# RFC 9111 §4.3: validation; §4.3.2: conditions that the cache evaluates; §4.3.5: HEAD.
class HTTPCacheValidationTest < Minitest::Test
  def test_a_304_whose_body_cannot_be_closed_is_no_error
    lines = StringIO.new
    body = Class.new do
      def each; end
      def close = raise("cannot be closed")
    end
    cache = Castellan::HTTPCache.new(lambda { |env|
      env["HTTP_IF_NONE_MATCH"] ? [304, { "etag" => '"a"' }, body.new] : [200, { "etag" => '"a"', "cache-control" => "no-cache" }, ["x"]]
    })
    answers = Array.new(2) { cache.call(Rack::MockRequest.env_for("http://example.org/", "rack.errors" => lines)) }
    assert_equal [[200, ["x"]]] * 2, answers.map { |status, _, sent| [status, sent] }
    assert_includes lines.string, "cannot be closed"
  end

  MODIFIED = "Sun, 01 Feb 2026 08:00:00 GMT"
  LATER = "Sun, 01 Feb 2026 08:00:01 GMT"
  EARLIER = "Sun, 01 Feb 2026 07:59:59 GMT"

  # sentence, stored fields, request fields, status
  CONDITIONS = [
    ["the stored tag", { "etag" => '"a"' }, { "If-None-Match" => '"a"' }, 304],
    ["another tag", { "etag" => '"a"' }, { "If-None-Match" => '"b"' }, 200],
    ["a weak tag of the request", { "etag" => '"a"' }, { "If-None-Match" => 'W/"a"' }, 304],
    ["a weak stored tag", { "etag" => 'W/"a"' }, { "If-None-Match" => '"a"' }, 304],
    ["two weak tags", { "etag" => 'W/"a"' }, { "If-None-Match" => 'W/"a"' }, 304],
    ["a list", { "etag" => '"a"' }, { "If-None-Match" => '"x", "a", "y"' }, 304],
    ["a list without spaces", { "etag" => '"a"' }, { "If-None-Match" => '"x","a"' }, 304],
    ["a tag with a comma", { "etag" => '"a,b"' }, { "If-None-Match" => '"x", "a,b"' }, 304],
    ["a part of a tag", { "etag" => '"a,b"' }, { "If-None-Match" => '"a"' }, 200],
    ["a star", { "etag" => '"a"' }, { "If-None-Match" => "*" }, 304],
    ["a star without a stored tag", {}, { "If-None-Match" => "*" }, 304],
    ["a tag without a stored tag", {}, { "If-None-Match" => '"a"' }, 200],
    ["a tag without quotes", { "etag" => '"a"' }, { "If-None-Match" => "a" }, 200],
    ["a different case", { "etag" => '"a"' }, { "If-None-Match" => '"A"' }, 200],
    ["the stored date", { "last-modified" => MODIFIED }, { "If-Modified-Since" => MODIFIED }, 304],
    ["a later date", { "last-modified" => MODIFIED }, { "If-Modified-Since" => LATER }, 304],
    ["an earlier date", { "last-modified" => MODIFIED }, { "If-Modified-Since" => EARLIER }, 200],
    ["a date of RFC 850", { "last-modified" => MODIFIED }, { "If-Modified-Since" => "Sunday, 01-Feb-26 08:00:00 GMT" }, 304],
    ["a date of asctime", { "last-modified" => MODIFIED }, { "If-Modified-Since" => "Sun Feb  1 08:00:00 2026" }, 304],
    ["an invalid date", { "last-modified" => MODIFIED }, { "If-Modified-Since" => "tomorrow" }, 200],
    ["Date where there is no Last-Modified", {}, { "If-Modified-Since" => "Sun, 01 Mar 2026 12:00:00 GMT" }, 304],
    ["before Date where there is no Last-Modified", {}, { "If-Modified-Since" => "Sun, 01 Mar 2026 11:59:59 GMT" }, 200],
    ["a tag comes before a date", { "etag" => '"a"', "last-modified" => MODIFIED },
     { "If-None-Match" => '"b"', "If-Modified-Since" => LATER }, 200],
    ["a matching tag comes before a date", { "etag" => '"a"', "last-modified" => MODIFIED },
     { "If-None-Match" => '"a"', "If-Modified-Since" => EARLIER }, 304],
    ["If-Match is for the origin server", { "etag" => '"a"' }, { "If-Match" => '"b"' }, 200],
    ["If-Unmodified-Since is for the origin server", { "last-modified" => MODIFIED }, { "If-Unmodified-Since" => EARLIER }, 200]
  ].freeze

  CONDITIONS.each do |sentence, stored, fields, status|
    %w[GET HEAD].each do |name|
      define_method("test_RFC 9111 §4.3.2: #{name} with #{sentence} is #{status}") do
        world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }.merge(stored), ["content"]] }
        world.get
        answered = world.call(name, "/", fields)
        assert_equal [status, 1, name == "GET" && status == 200 ? "content" : ""], [answered.status, world.requests.size, answered.body]
      end
    end
  end

  # RFC 9110 §13.1.3: without Last-Modified, the condition is false for a response that was not stored before.
  def test_date_stands_for_last_modified_of_stored_responses_only
    %w[no-store private max-age=60].each do |control|
      world = Castellan::CachedApplication.new { [200, { "cache-control" => control }, ["whole"]] }
      answer = world.get("/", { "If-Modified-Since" => "Sun, 01 Mar 2026 12:00:00 GMT" })
      assert_equal [200, "whole"], [answer.status, answer.body]
    end
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "etag" => '"a"' }, ["old"]] }
    world.get
    world.later(70)
    world.answer { [200, { "cache-control" => "max-age=60", "etag" => '"b"' }, ["new"]] }
    answer = world.get("/", { "If-Modified-Since" => world.date })
    assert_equal [200, "new", "Castellan; fwd=stale; stored"], [answer.status, answer.body, answer.note]
  end

  def test_a_304_has_the_fields_that_guide_caches_and_none_of_the_content
    fields = { "cache-control" => "max-age=60", "etag" => '"a"', "vary" => "accept", "expires" => "0", "content-location" => "/b",
               "content-type" => "text/plain", "content-language" => "de", "content-length" => "7" }
    world = Castellan::CachedApplication.new { [200, fields.dup, ["content"]] }
    world.get
    headers = world.get("/", { "If-None-Match" => '"a"' }).headers
    assert_equal %w[age cache-control cache-status content-location date etag expires vary], headers.keys.sort
  end

  def test_a_304_makes_no_more_calls_than_the_whole_response
    fields = { "cache-control" => "max-age=60", "etag" => '"a"', "content-type" => "text/plain" }
    cache = Castellan::HTTPCache.new(->(_env) { [200, fields.dup, ["content"]] })
    env = Rack::MockRequest.env_for("http://example.org/", "HTTP_HOST" => "example.org")
    whole, none = [{}, { "HTTP_IF_NONE_MATCH" => '"a"' }].map do |condition|
      conditional = env.merge(condition)
      2.times { cache.call(conditional.dup) }
      calls = 0
      TracePoint.new(:call, :c_call, :b_call) { calls += 1 }.enable { cache.call(conditional) }
      calls
    end
    assert_operator none, :<=, whole
  end

  def test_only_stored_responses_of_a_2xx_status_are_compared
    [[203, 304], [404, 404], [301, 301]].each do |status, answered|
      fields = { "cache-control" => "max-age=60", "etag" => '"a"' }
      world = Castellan::CachedApplication.new { [status, fields.dup, ["x"]] }
      world.get
      assert_equal answered, world.get("/", { "If-None-Match" => '"a"' }).status
    end
  end

  def test_a_client_that_revalidates_fills_the_cache
    world = Castellan::CachedApplication.new do |env|
      env["HTTP_IF_NONE_MATCH"] ? [304, {}, []] : [200, { "etag" => '"a"', "cache-control" => "max-age=60" }, ["content"]]
    end
    first, second = Array.new(2) { world.get("/", { "If-None-Match" => '"a"' }) }
    assert_equal [304, "", "Castellan; fwd=uri-miss; stored; fwd-status=200"], [first.status, first.body, first.note]
    assert_equal [304, true], [second.status, second.hit?]
    assert_equal [200, "content", true], world.get.then { |other| [other.status, other.body, other.hit?] }
    assert_equal [nil], world.requests.map { |env| env["HTTP_IF_NONE_MATCH"] }
  end

  # sentence, fields and content of the response
  { "an Array" => -> { ["content"] }, "a stream" => -> { ["content"].each },
    "more than is stored" => -> { ["x" * 100] } }.each do |sentence, body|
    define_method("test_a_condition_that_was_not_forwarded_is_evaluated_for_what_is_not_stored: #{sentence}") do
      closed = 0
      world = Castellan::CachedApplication.new(max_body: 50) do |env|
        content = body.call
        content.define_singleton_method(:close) { closed += 1 }
        fields = { "etag" => '"a"', "cache-control" => "private", "x-a" => "1" }
        env["HTTP_IF_NONE_MATCH"] ? [304, fields, []] : [200, fields, content]
      end
      first, second = Array.new(2) { world.get("/", { "If-None-Match" => '"a"' }) }
      assert_equal [304, "", "1", "private"], [first.status, first.body, first["x-a"], first["cache-control"]]
      assert_equal [304, "Castellan; fwd=uri-miss", '"a"'], [second.status, second.note, world.requests.last["HTTP_IF_NONE_MATCH"]],
                   "the next one is forwarded with its condition"
      assert_equal [200, 1], [world.get("/other", { "If-None-Match" => '"b"' }).status, closed - 1]
    end
  end

  def test_the_conditions_of_what_is_not_stored_are_forwarded_for_an_hour
    real = Castellan::Clock.method(:monotonic_ns).unbind.bind(Castellan::Clock)
    world = Castellan::CachedApplication.new do |env|
      env["HTTP_IF_NONE_MATCH"] ? [304, {}, []] : [200, { "etag" => '"a"', "cache-control" => "private" }, ["x"]]
    end
    seen = [0, 11, 3_600, 3_700].map do |seconds|
      Castellan::Clock.stub(:monotonic_ns, -> { real.call + (seconds * 1_000_000_000) }) { world.get("/", { "If-None-Match" => '"a"' }) }
      world.requests.last["HTTP_IF_NONE_MATCH"]
    end
    assert_equal [nil, '"a"', '"a"', nil], seen
  end

  def test_the_conditions_of_a_client_with_credentials_are_forwarded
    world = Castellan::CachedApplication.new { |env| [env["HTTP_IF_NONE_MATCH"] ? 304 : 200, { "etag" => '"a"' }, []] }
    answered = world.get("/", { "If-None-Match" => '"x"', "If-Modified-Since" => MODIFIED, "Cookie" => "a=1" })
    assert_equal [304, "Castellan; fwd=uri-miss"], [answered.status, answered.note]
    assert_equal ['"x"', MODIFIED], world.requests.last.values_at("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE")
  end

  def test_a_strong_tag_validates_no_response_with_a_weak_one
    calls = 0
    world = Castellan::CachedApplication.new do |env|
      calls += 1
      next [304, { "etag" => '"v"' }, []] if env["HTTP_IF_NONE_MATCH"]

      [200, { "cache-control" => "max-age=1", "etag" => 'W/"v"' }, [calls.to_s]]
    end
    world.get
    world.later(5)
    assert_equal ["3", 'W/"v"'], world.get.then { |answer| [answer.body, answer["etag"]] }
  end

  def test_fields_that_are_not_stored_reach_the_client_of_a_304
    world = Castellan::CachedApplication.new do |env|
      fields = { "cache-control" => 'max-age=1, no-cache="x-user"', "etag" => '"a"', "x-user" => "ada" }
      env["HTTP_IF_NONE_MATCH"] ? [304, fields, []] : [200, fields, ["x"]]
    end
    world.get
    world.later(5)
    assert_equal [200, "ada"], world.get.then { |answer| [answer.status, answer["x-user"]] }
    assert_nil world.get["x-user"]
  end

  def test_an_invalid_date_is_not_sent_as_a_validator
    world = Castellan::CachedApplication.new { [200, { "etag" => '"a"', "last-modified" => "yesterday", "cache-control" => "max-age=1" }, ["x"]] }
    world.get
    world.later(5)
    world.get
    assert_equal ['"a"', nil], world.requests.last.values_at("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE")
  end

  # sentence, stored fields, the conditions of the validation
  [
    ["a tag and a date", { "etag" => '"a"', "last-modified" => MODIFIED }, ['"a"', MODIFIED]],
    ["a weak tag", { "etag" => 'W/"a"' }, ['W/"a"', nil]],
    ["a date alone", { "last-modified" => MODIFIED }, [nil, MODIFIED]]
  ].each do |sentence, stored, conditions|
    define_method("test_RFC 9111 §4.3.1: #{sentence}: the stored validators replace the client's and the client's come back") do
      seen = nil
      world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=5" }.merge(stored), ["content"]] }
      world.get
      world.later(10)
      world.answer do |env|
        seen = env.values_at("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_RANGE")
        [304, {}, []]
      end
      environment = Rack::MockRequest.env_for("http://example.org/", "HTTP_HOST" => "example.org", "HTTP_IF_NONE_MATCH" => '"mine"',
                                                                     "HTTP_RANGE" => "bytes=0-1")
      assert_equal [206, ["co"]], world.cache.call(environment).values_at(0, 2)
      assert_equal [*conditions, nil], seen
      assert_equal ['"mine"', nil, "bytes=0-1"], environment.values_at("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_RANGE")
    end
  end

  def test_a_304_updates_the_stored_response
    world = world_with({ "x-a" => "1", "x-b" => "1", "content-type" => "text/plain" })
    world.answer {
      [304, { "etag" => '"a"', "cache-control" => "max-age=30", "x-a" => "2", "x-new" => %w[1 2], "connection" => "x-hop", "x-hop" => "1" },
       []]
    }
    2.times do |time|
      answered = world.get
      assert_equal [200, "content", "2", "1", "1, 2", nil, time.zero? ? nil : 0],
                   [answered.status, answered.body, answered["x-a"], answered["x-b"], answered["x-new"], answered["x-hop"], answered.age]
    end
    assert_equal 2, world.requests.size
    world.later(29)
    assert_predicate world.get, :hit?
  end

  # RFC 9111 §3.2: Content-* is no sign that a field is not updated.
  def test_a_304_and_a_head_response_update_all_fields_but_those_of_its_own_content
    kept = { "content-length" => "7", "content-digest" => "sha-256=:YQ==:" }
    updated = %w[content-encoding content-language content-location content-md5 content-foo expires]
    [304, 200].each do |status|
      world = world_with({ **kept, **updated.to_h { |name| [name, "old"] } })
      fields = { "content-range" => "bytes 0-0/9", "content-digest" => "sha-256=:Yg==:", **updated.to_h { |name| [name, "new"] } }
      world.answer { [status, { "etag" => '"a"', "cache-control" => "max-age=60", **fields }.compact, []] }
      status == 304 ? world.get : world.head
      answered = world.get
      assert_equal [true, "content", "7", "sha-256=:YQ==:", nil, *["new"] * 6],
                   [answered.hit?, answered.body, *[*kept.keys, "content-range", *updated].map { |name| answered[name] }]
    end
  end

  # sentence, stored fields, fields of the 304, status of the response to the client
  [
    ["its own tag", { "etag" => '"a"' }, { "etag" => '"a"' }, "content"],
    ["its tag made weak", { "etag" => '"a"' }, { "etag" => 'W/"a"' }, "content"],
    ["no validator", { "etag" => '"a"' }, {}, "content"],
    ["another tag", { "etag" => '"a"' }, { "etag" => '"b"' }, "new"],
    ["another date", { "last-modified" => MODIFIED }, { "last-modified" => LATER }, "new"],
    ["a tag where only a date was stored", { "last-modified" => MODIFIED }, { "etag" => '"b"' }, "new"],
    ["its date and a new tag", { "last-modified" => MODIFIED }, { "etag" => '"b"', "last-modified" => MODIFIED }, "content"],
    ["its weak date and a new tag", { "last-modified" => MODIFIED, "date" => MODIFIED },
     { "etag" => '"b"', "last-modified" => MODIFIED }, "new"],
    ["its weak date and a new weak tag", { "last-modified" => MODIFIED, "date" => MODIFIED },
     { "etag" => 'W/"b"', "last-modified" => MODIFIED }, "content"]
  ].each do |sentence, stored, fields, body|
    define_method("test_RFC 9111 §4.3.4: a 304 with #{sentence} answers #{body}") do
      world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=5" }.merge(stored), ["content"]] }
      world.get
      world.later(10)
      world.answer { |env|
        env["HTTP_IF_NONE_MATCH"] || env["HTTP_IF_MODIFIED_SINCE"] ? [304, fields.dup,
                                                                      []] : [200, { "cache-control" => "max-age=5" }, ["new"]]
      }
      assert_equal [200, body], world.get.to_a.values_at(0, 2)
    end
  end

  # validator of the stored responses, fields of the 304, whether it also updates the one that varies on less
  [
    [{ "etag" => '"a"' }, { "etag" => '"a"' }, true],
    [{ "etag" => 'W/"a"' }, { "etag" => 'W/"a"' }, false],
    [{ "etag" => '"a"' }, { "etag" => 'W/"a"' }, false],
    [{ "etag" => '"a"' }, {}, false],
    [{ "last-modified" => MODIFIED }, { "last-modified" => MODIFIED }, true],
    [{ "last-modified" => MODIFIED, "date" => MODIFIED }, { "last-modified" => MODIFIED }, false]
  ].each do |validator, fields, updated|
    define_method("test_RFC 9111 §4.3.4: a 304 with #{fields} for two responses with #{validator} updates #{updated ? "both" : "one"}") do
      world = two_matching(validator)
      world.answer { [304, { "cache-control" => "max-age=60", "x-new" => "1", **fields }, []] }
      assert_equal ["foo, bar", "1"], world.get("/", { "Foo" => "1", "Bar" => "1" }).then { |answer| [answer.body, answer["x-new"]] }
      assert_equal [true, "1"], world.get("/", { "Foo" => "1", "Bar" => "1" }).then { |answer| [answer.hit?, answer["x-new"]] }
      world.answer { [200, {}, ["new"]] }
      other = world.get("/", { "Foo" => "1", "Bar" => "2" })
      assert_equal updated ? ["foo", true, "1"] : ["new", false, nil], [other.body, other.hit?, other["x-new"]]
    end
  end

  # Rack::Deflater adds Accept-Encoding to the Vary of the responses that it compresses, but not to that of a 304.
  def test_compressed_content_stays_with_its_readers_after_a_304_with_another_vary
    page = Rack::ConditionalGet.new(lambda { |_env|
      [200, { "content-type" => "text/plain", "cache-control" => "max-age=60", "vary" => "Accept", "etag" => '"a"' }, ["x" * 500]]
    })
    deflater = Rack::Deflater.new(page)
    world = Castellan::CachedApplication.new { |env| deflater.call(env) }
    2.times do
      assert_equal "gzip", world.get("/", { "Accept-Encoding" => "gzip" })["content-encoding"]
      world.later(61)
    end
    assert_equal %w[304], [world.get("/", { "Accept-Encoding" => "gzip" }).note[/fwd-status=(\d+)/, 1]]
    plain = world.get("/", { "Accept-Encoding" => "identity" })
    assert_equal [nil, "x" * 500], [plain["content-encoding"], plain.body]
    assert_equal "Accept, Accept-Encoding", world.get("/", { "Accept-Encoding" => "gzip" })["vary"]
  end

  def test_a_304_with_vary_leaves_no_response_that_varies_on_less
    world = two_matching({ "etag" => '"a"' })
    world.answer { [304, { "cache-control" => "max-age=60", "etag" => '"a"', "vary" => "foo, bar" }, []] }
    world.get("/", { "Foo" => "1", "Bar" => "1" })
    world.answer { [200, {}, ["new"]] }
    assert_equal "foo, bar", world.get("/", { "Foo" => "1", "Bar" => "1" }).body
    assert_equal "new", world.get("/", { "Foo" => "1", "Bar" => "2" }).body
  end

  { "GET" => 304, "HEAD" => 200 }.each do |name, status|
    define_method("test_a #{status} for a #{name} with credentials leaves the other response that it must not get") do
      world = two_matching({ "etag" => '"a"' }, "public, max-age=5")
      world.answer { [status, { "etag" => '"a"', "cache-control" => "public, max-age=60" }, []] }
      world.call(name, "/", { "Foo" => "1", "Bar" => "1", "Authorization" => "Basic x" })
      world.answer { |env| [304, { "etag" => env["HTTP_IF_NONE_MATCH"] }, []] }
      other = world.get("/", { "Foo" => "1", "Bar" => "2" })
      assert_equal ["foo", "Castellan; fwd=stale; fwd-status=304"], [other.body, other.note]
    end
  end

  def test_a_304_that_forbids_storing_deletes_the_response
    %w[no-store private].each do |value|
      world = world_with({})
      world.answer { [304, { "etag" => '"a"', "cache-control" => value }, []] }
      assert_equal [200, "content", "Castellan; fwd=stale; fwd-status=304"], [(first = world.get).status, first.body, first.note]
      world.answer { [200, {}, ["after"]] }
      assert_equal ["after", "Castellan; fwd=uri-miss"], [(second = world.get).body, second.note]
    end
  end

  def test_the_cookie_of_a_304_reaches_its_client_alone
    world = world_with({})
    world.answer { [304, { "etag" => '"a"', "cache-control" => "max-age=60", "set-cookie" => "session=1" }, []] }
    assert_equal "session=1", world.get["set-cookie"]
    assert_equal [true, nil], [(second = world.get).hit?, second["set-cookie"]]
  end

  # RFC 9111 §3.2. The other fields may belong to the client of the cookie, unless the application says what does.
  def test_a_304_with_a_cookie_updates_what_caches_read_and_with_no_cache_everything
    { "max-age=60" => "old", "max-age=60, no-cache=\"set-cookie\"" => "new" }.each do |control, link|
      world = world_with({ "link" => "old", "surrogate-key" => "old" })
      fields = { "etag" => '"a"', "cache-control" => control, "set-cookie" => "session=1", "link" => "new", "surrogate-key" => "new" }
      world.answer { [304, fields.dup, []] }
      assert_equal(%w[session=1 new], world.get.then { |answered| [answered["set-cookie"], answered["link"]] })
      assert_equal([true, nil, link, "new"], world.get.then { |one| [one.hit?, one["set-cookie"], one["link"], one["surrogate-key"]] })
      world.cache.purge_tags("new")
      refute_predicate world.get, :hit?
    end
  end

  def test_a_full_response_replaces_the_stale_one_and_the_clients_condition_is_evaluated
    world = world_with({})
    world.answer { [200, { "etag" => '"b"', "cache-control" => "max-age=60" }, ["new"]] }
    first = world.get("/", { "If-None-Match" => '"b"' })
    assert_equal [304, "Castellan; fwd=stale; stored; fwd-status=200"], [first.status, first.note]
    assert_equal ["new", true], [(second = world.get).body, second.hit?]
  end

  def test_the_cookie_of_a_full_response_reaches_its_client_alone
    number = 0
    world = Castellan::CachedApplication.new do
      number += 1
      fields = { "cache-control" => "public, max-age=0, no-cache=\"set-cookie\"", "etag" => "\"#{number}\"" }
      [200, fields.merge("set-cookie" => "n=#{number}"), ["x"]]
    end
    assert_equal %w[n=1 n=2], Array.new(2) { world.get.headers["set-cookie"] }
    assert_equal [true, nil], world.get("/", { "cache-control" => "max-stale" }).then { |answer|
      [answer.hit?, answer.headers["set-cookie"]]
    }
  end

  def test_a_full_response_that_is_not_stored_deletes_the_stale_one
    world = world_with({})
    world.answer { [404, {}, ["gone"]] }
    assert_equal 404, world.get.status
    world.get
    refute world.requests.last.key?("HTTP_IF_NONE_MATCH")
  end

  def test_a_failure_keeps_the_stale_response
    world = world_with({})
    world.answer { [503, {}, ["later"]] }
    assert_equal 503, world.get.status
    world.answer { |env| [env["HTTP_IF_NONE_MATCH"] == '"a"' ? 304 : 200, {}, []] }
    assert_equal "content", world.get.body
  end

  # A part or a failed condition is the answer to a field that one client sent.
  [206, 304, 412, 416].each do |status|
    define_method("test_a #{status} leaves the stored response") do
      world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }, ["content"]] }
      world.get
      world.answer { [status, {}, []] }
      fields = { "Range" => "bytes=90-", "If-Match" => '"b"', "If-None-Match" => '"c"',
                 "Cache-Control" => "no-cache" }
      assert_equal status, world.get("/", fields).status
      assert_equal ["content", true], [(answered = world.get).body, answered.hit?]
    end
  end

  # method, fields of the response
  [
    ["GET", { "etag" => '"a"' }], ["GET", { "etag" => '"b"' }], ["HEAD", { "etag" => '"b"' }]
  ].each do |name, fields|
    define_method("test_a #{name} with no-store that is answered by #{fields} leaves the stored response") do
      world = world_with({})
      world.answer { |env| [env["HTTP_IF_NONE_MATCH"] ? 304 : 200, fields.dup, []] }
      world.call(name, "/", { "Cache-Control" => "no-store" })
      world.answer { [304, { "etag" => '"a"' }, []] }
      assert_equal ["content", '"a"'], [world.get.body, world.requests.last["HTTP_IF_NONE_MATCH"]]
    end
  end

  # sentence, fields of the HEAD response, what a GET is afterwards
  [
    ["the same validators freshen", { "etag" => '"a"', "cache-control" => "max-age=60", "content-length" => "7", "x-new" => "1" },
     ["content", true, "1"]],
    ["one validator freshens", { "etag" => '"a"', "cache-control" => "max-age=60", "x-new" => "1" }, ["content", true, "1"]],
    ["no validator freshens nothing", { "cache-control" => "max-age=60", "x-new" => "1" }, ["new", false, nil]],
    ["the same length alone freshens nothing", { "content-length" => "7", "cache-control" => "max-age=60" }, ["new", false, nil]],
    ["another tag deletes", { "etag" => '"b"', "cache-control" => "max-age=60" }, ["new", false, nil]],
    ["another date deletes", { "last-modified" => LATER, "cache-control" => "max-age=60" }, ["new", false, nil]],
    ["another length deletes", { "etag" => '"a"', "content-length" => "8", "cache-control" => "max-age=60" }, ["new", false, nil]]
  ].each do |sentence, fields, expected|
    define_method("test_RFC 9111 §4.3.5: a HEAD response with #{sentence}") do
      world = world_with({})
      world.answer { [200, fields.dup, []] }
      world.head
      world.answer { [200, { "cache-control" => "max-age=5" }, ["new"]] }
      answered = world.get
      assert_equal expected, [answered.body, answered.hit?, answered["x-new"]]
    end
  end

  # Uptime monitors send HEAD all the time, and frameworks add the length of the content.
  [{}, { "content-length" => "3" }].each do |fields|
    define_method("test_a HEAD response with #{fields} and no validator keeps no old content fresh") do
      content = "old"
      world = Castellan::CachedApplication.new do |env|
        [200, { "cache-control" => "max-age=60", **fields }, env["REQUEST_METHOD"] == "HEAD" ? [] : [content]]
      end
      world.get
      content = "new"
      world.head("/", { "Cache-Control" => "no-cache" })
      assert_equal [true, "old"], world.get.then { |answer| [answer.hit?, answer.body] }
      world.later(65)
      world.head
      assert_equal "new", world.get.body
    end
  end

  def test_a_successful_head_response_deletes_a_stored_404
    world = Castellan::CachedApplication.new { [404, { "cache-control" => "max-age=10" }, ["none"]] }
    world.get
    world.later(20)
    world.answer { |env| [200, { "cache-control" => "max-age=60" }, env["REQUEST_METHOD"] == "HEAD" ? [] : ["new"]] }
    world.head
    assert_equal [200, "new"], world.get.then { |answer| [answer.status, answer.body] }
  end

  def test_a_304_updates_a_stored_cookie
    cookie = "a=1"
    world = Castellan::CachedApplication.new(set_cookie: :explicit) do |env|
      fields = { "cache-control" => "public, max-age=10", "etag" => '"a"', "set-cookie" => cookie }
      env.key?("HTTP_IF_NONE_MATCH") ? [304, fields, []] : [200, fields, ["x"]]
    end
    assert_equal "a=1", world.get["set-cookie"]
    world.later(20)
    cookie = "a=2"
    assert_equal([[false, "a=2"], [true, "a=2"]], Array.new(2) { world.get.then { |answer| [answer.hit?, answer["set-cookie"]] } })
  end

  def test_white_space_around_values_is_no_part_of_them
    spaced = { "etag" => '"a" ', "cache-control" => "max-age=60", "date" => "\t#{(Castellan::CachedApplication::START - 50).httpdate} ", "content-length" => "1 " }
    world = Castellan::CachedApplication.new { [200, spaced.dup, ["x"]] }
    world.get
    assert_equal [304, 50], world.get("/", { "If-None-Match" => '"a"' }).then { |answer| [answer.status, answer.age] }
  end

  def test_a_head_response_updates_or_deletes_every_response_that_matches
    [['"a"', ["foo, bar", "foo"]], ['"b"', %w[new new]]].each do |tag, bodies|
      world = two_matching({ "etag" => '"a"' })
      world.answer { [200, { "etag" => tag, "cache-control" => "max-age=60" }, []] }
      world.head("/", { "Foo" => "1", "Bar" => "1" })
      world.answer { [200, {}, ["new"]] }
      assert_equal(bodies, %w[1 2].map { |bar| world.get("/", { "Foo" => "1", "Bar" => bar }).body })
    end
  end

  def test_a_head_request_validates_the_stored_response
    world = world_with({})
    world.answer { |env| [env["HTTP_IF_NONE_MATCH"] == '"a"' ? 304 : 500, { "etag" => '"a"', "cache-control" => "max-age=60" }, []] }
    answered = world.head("/", { "If-None-Match" => '"old"' })
    assert_equal [200, "", "7", "Castellan; fwd=stale; fwd-status=304"],
                 [answered.status, answered.body, answered["content-length"], answered.note]
    assert_equal ["content", true], world.get.then { |fresh| [fresh.body, fresh.hit?] }
    assert_equal 2, world.requests.size
  end

  def test_the_condition_of_a_head_request_is_evaluated_for_its_response
    { '"b"' => 304, '"a"' => 200 }.each do |tag, status|
      world = world_with({})
      world.answer { |env| [200, { "etag" => '"b"', "x-seen" => env["HTTP_IF_NONE_MATCH"] }, []] }
      answered = world.head("/", { "If-None-Match" => tag })
      assert_equal [status, '"a"'], [answered.status, answered["x-seen"]]
    end
  end

  def test_head_is_answered_from_a_stored_get
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }, ["content"]] }
    world.get
    answered = world.head
    assert_equal [200, "", "7", true], [answered.status, answered.body, answered["content-length"], answered.hit?]
  end

  private

  # Two stale responses for Foo: 1 and Bar: 1, whose content is their Vary. The first also matches Bar: 2.
  def two_matching(validator, control = "max-age=5")
    vary = "foo"
    world = Castellan::CachedApplication.new do
      [200, { "cache-control" => vary == "foo" ? "max-age=5" : control, "vary" => vary, **validator }, [vary]]
    end
    world.get("/", { "Foo" => "1", "Bar" => "1" })
    vary = "foo, bar"
    world.later(1)
    world.get("/", { "Foo" => "1", "Bar" => "1", "Cache-Control" => "no-cache" })
    world.later(10)
    world
  end

  # A stale response with the tag "a".
  def world_with(fields)
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=5", "etag" => '"a"' }.merge(fields), ["content"]] }
    world.get
    world.later(10)
    world
  end
end
