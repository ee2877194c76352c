# frozen_string_literal: true

require "test_helper"
require "support/cache_rows"

# RFC 9111 §5.2.1: what clients ask of a cache; §4.2.4: stale responses.
class HTTPCacheRequestsTest < Minitest::Test
  extend Castellan::CacheRows

  FRESH = { "cache-control" => "max-age=60", "etag" => '"a"' }.freeze
  second = ->(value) { { second: { "Cache-Control" => value } } }
  stale = ->(value, after: 70) { { after: after, second: { "Cache-Control" => value } } }
  control = ->(value) { { "cache-control" => value, "etag" => '"a"' } }

  rows "RFC 9111 §5.2.1.4",
       ["no-cache is validated", FRESH, :validate, second["no-cache"]],
       ["NO-CACHE is validated", FRESH, :validate, second["x, NO-CACHE"]],
       ["no-cache in an argument is nothing", FRESH, :hit, second["x=\"no-cache\""]],
       ["no-cache does not count where clients' directives do not", FRESH, :hit,
        { cache: { client_directives: false }, **second["no-cache"] }]

  rows "RFC 9111 §5.2.1.1",
       ["max-age=0 is validated", FRESH, :validate, second["max-age=0"]],
       ["max-age above the age is a hit", FRESH, :hit, second["max-age=10"]],
       ["max-age equal to the age is a hit", FRESH, :hit, second["max-age=3"]],
       ["max-age below the age is validated", FRESH, :validate, second["max-age=2"]],
       ["a quoted max-age counts", FRESH, :validate, second['max-age="2"']],
       ["an invalid max-age is 0", FRESH, :validate, second["max-age=x"]],
       ["max-age does not make a stale response fresh", FRESH, :validate, stale["max-age=1000"]],
       ["max-age counts the age that the origin sent", FRESH.merge("age" => "20"), :validate, second["max-age=10"]]

  rows "RFC 9111 §5.2.1.3",
       ["min-fresh below the rest is a hit", FRESH, :hit, second["min-fresh=57"]],
       ["min-fresh above the rest is validated", FRESH, :validate, second["min-fresh=58"]],
       ["min-fresh of a stale response is validated", FRESH, :validate, stale["min-fresh=1"]]

  rows "RFC 9111 §5.2.1.2",
       ["max-stale takes any stale response", FRESH, :hit, stale["max-stale"]],
       ["max-stale takes one without a validator", { "cache-control" => "max-age=1" }, :hit,
        { second: { "Cache-Control" => "max-stale=5" } }],
       ["max-stale takes one that is stale for so long", FRESH, :hit, stale["max-stale=10"]],
       ["max-stale does not take one that is stale for longer", FRESH, :validate, stale["max-stale=9"]],
       ["an invalid max-stale takes none", FRESH, :validate, stale["max-stale=x"]],
       ["max-stale with a lower max-age is validated", FRESH, :validate, stale["max-age=10, max-stale"]],
       *%w[must-revalidate proxy-revalidate s-maxage=60 no-cache].map { |directive|
         ["max-stale does not change #{directive}", control["max-age=60, #{directive}"], :validate, stale["max-stale"]]
       }

  rows "RFC 9111 §5.2.1.7",
       ["only-if-cached of a fresh response is a hit", FRESH, :hit, second["only-if-cached"]],
       ["only-if-cached of a stale response is 504", FRESH, :timeout, stale["only-if-cached"]],
       ["only-if-cached with max-stale is a hit", FRESH, :hit, stale["only-if-cached, max-stale=100"]],
       ["only-if-cached of nothing is 504", { "cache-control" => "no-store" }, :timeout, second["only-if-cached"]],
       ["only-if-cached with no-cache is 504", FRESH, :timeout, second["only-if-cached, no-cache"]]

  rows "RFC 9111 §5.4",
       ["Pragma: no-cache is validated", FRESH, :validate, { second: { "Pragma" => "no-cache" } }],
       ["Pragma: No-Cache is validated", FRESH, :validate, { second: { "Pragma" => "x, No-Cache" } }],
       ["Pragma is ignored beside Cache-Control", FRESH, :hit, { second: { "Pragma" => "no-cache", "Cache-Control" => "max-age=9" } }],
       ["another Pragma is ignored", FRESH, :hit, { second: { "Pragma" => "no-cached" } }],
       ["Pragma in a response is ignored", FRESH.merge("pragma" => "no-cache"), :hit]

  # sentence, Cache-Control, the member of Cache-Status, seconds, fields of the second request
  [
    ["a stale response is used while it is validated", "max-age=60, stale-while-revalidate=20", "Castellan; hit; ttl=-19", 79],
    ["it is used at the last second", "max-age=60, stale-while-revalidate=20", "Castellan; hit; ttl=-20", 80],
    ["afterwards it is validated first", "max-age=60, stale-while-revalidate=20", "Castellan; fwd=stale; fwd-status=304", 81],
    ["a fresh one is a hit", "max-age=60, stale-while-revalidate=20", "Castellan; hit; ttl=1", 59],
    ["an invalid number is none", "max-age=60, stale-while-revalidate=x", "Castellan; fwd=stale; fwd-status=304", 61],
    ["must-revalidate forbids it", "max-age=60, stale-while-revalidate=20, must-revalidate", "Castellan; fwd=stale; fwd-status=304", 61],
    ["proxy-revalidate forbids it", "max-age=60, stale-while-revalidate=20, proxy-revalidate", "Castellan; fwd=stale; fwd-status=304", 61],
    ["s-maxage forbids it", "s-maxage=60, stale-while-revalidate=20", "Castellan; fwd=stale; fwd-status=304", 61],
    ["no-cache forbids it", "max-age=60, stale-while-revalidate=20, no-cache", "Castellan; fwd=stale; fwd-status=304", 61],
    ["a client's no-cache comes first", "max-age=60, stale-while-revalidate=20", "Castellan; fwd=stale; fwd-status=304", 61,
     { "Cache-Control" => "no-cache" }],
    ["a client's max-age comes first", "max-age=60, stale-while-revalidate=20", "Castellan; fwd=stale; fwd-status=304", 61,
     { "Cache-Control" => "max-age=10" }],
    ["a client's max-age without max-stale takes no stale response", "max-age=60, stale-while-revalidate=20",
     "Castellan; fwd=stale; fwd-status=304", 61, { "Cache-Control" => "max-age=100" }],
    ["a client's max-age with max-stale takes one", "max-age=60, stale-while-revalidate=20", "Castellan; hit; ttl=-1", 61,
     { "Cache-Control" => "max-age=100, max-stale=5" }],
    ["a client's max-stale takes no staler one", "max-age=60, stale-while-revalidate=20",
     "Castellan; fwd=stale; fwd-status=304", 70, { "Cache-Control" => "max-stale=9" }],
    ["only-if-cached takes it", "max-age=60, stale-while-revalidate=20", "Castellan; hit; ttl=-1", 61,
     { "Cache-Control" => "only-if-cached" }]
  ].each do |sentence, value, note, after, fields|
    define_method("test_RFC 5861 §3: #{sentence}") do
      world = Castellan::CachedApplication.new { |env| env["HTTP_IF_NONE_MATCH"] ? [304, {}, []] : [200, { "cache-control" => value, "etag" => '"a"' }, ["x"]] }
      world.get
      world.later(after)
      answered = world.get("/", fields || {})
      world.cache.refreshes.wait
      assert_equal [200, "x", note], [answered.status, answered.body, answered.note]
    end
  end

  def test_only_if_cached_is_504_for_what_is_never_forwarded_to_the_cache
    world = Castellan::CachedApplication.new { [200, {}, ["x"]] }
    answered = world.get("/", { "Cache-Control" => "only-if-cached", "Upgrade" => "foo" })
    assert_equal [504, "Castellan; detail=only-if-cached", 0], [answered.status, answered.note, world.requests.size]
  end

  def test_the_background_validation_replaces_the_stale_response_and_happens_once
    gate = Queue.new
    number = 0
    world = Castellan::CachedApplication.new do
      gate.pop if number.positive?
      [200, { "cache-control" => "max-age=10, stale-while-revalidate=100" }, [(number += 1).to_s]]
    end
    world.get
    world.later(20)
    assert_equal %w[1 1 1], Array.new(3) { world.get.body }
    gate << :go
    world.cache.refreshes.wait
    assert_equal [2, "2", true], [world.requests.size, (fresh = world.get).body, fresh.hit?]
  end

  def test_the_background_request_has_neither_the_clients_conditions_nor_its_connection
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=10, stale-while-revalidate=100", "etag" => '"a"' }, ["x"]] }
    world.get
    world.later(20)
    connection = { "rack.early_hints" => ->(_) {}, "rack.response_finished" => [] }
    assert_equal 206, world.get("/", { "Range" => "bytes=0-0", "If-Match" => '"b"' }, env: connection).status
    world.cache.refreshes.wait
    names = ["HTTP_IF_NONE_MATCH", "HTTP_RANGE", "HTTP_IF_MATCH", *connection.keys]
    assert_equal ['"a"', nil, nil, nil, nil], world.requests.last.values_at(*names)
  end

  def test_a_head_is_refreshed_in_the_background_by_a_get
    fields = { "cache-control" => "max-age=10, stale-while-revalidate=100" }
    world = Castellan::CachedApplication.new { [200, fields.dup, ["old"]] }
    world.get
    world.later(20)
    world.answer { [200, { "cache-control" => "max-age=10" }, ["new"]] }
    world.head
    world.cache.refreshes.wait
    assert_equal ["new", true], [(answered = world.get).body, answered.hit?]
  end

  def test_a_request_with_no_store_is_not_repeated_in_the_background
    fields = { "cache-control" => "max-age=10, stale-while-revalidate=100" }
    world = Castellan::CachedApplication.new { [200, fields.dup, ["x"]] }
    world.get
    world.later(20)
    assert_predicate world.get("/", { "Cache-Control" => "no-store" }), :hit?
    world.cache.refreshes.wait
    assert_equal 1, world.requests.size
  end

  def test_a_failing_background_request_keeps_the_stale_response_and_is_logged
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=10, stale-while-revalidate=100" }, ["x"]] }
    world.get
    world.later(20)
    world.answer { raise "away" }
    errors = StringIO.new
    2.times do
      assert_equal "x", world.get("/", {}, env: { "rack.errors" => errors }).body
      world.cache.refreshes.wait
    end
    assert_includes errors.string, "castellan: a stale response could not be refreshed"
  end

  # sentence, Cache-Control, outcome, fields of the second request
  ERRORS = [
    ["stale-if-error is used", "max-age=60, stale-if-error=20", :stale],
    ["without it the failure is passed", "max-age=60", :error],
    ["a number that ran out is none", "max-age=60, stale-if-error=9", :error],
    ["must-revalidate forbids it", "max-age=60, stale-if-error=20, must-revalidate", :error],
    ["proxy-revalidate forbids it", "max-age=60, stale-if-error=20, proxy-revalidate", :error],
    ["s-maxage forbids it", "s-maxage=60, stale-if-error=20", :error],
    ["no-cache forbids it", "no-cache, stale-if-error=20", :error],
    ["the client may ask for it", "max-age=60", :stale, { "Cache-Control" => "stale-if-error=20" }],
    ["the client's number counts", "max-age=60", :error, { "Cache-Control" => "stale-if-error=9" }],
    ["the client cannot ask where must-revalidate forbids it", "max-age=60, must-revalidate", :error,
     { "Cache-Control" => "stale-if-error=20" }]
  ].freeze

  ERRORS.each do |sentence, value, outcome, fields|
    define_method("test_RFC 5861 §4: #{sentence}") do
      [500, 502, 503, 504].each do |status|
        world = failing_world(value) { [status, {}, ["failed"]] }
        answered = world.get("/", fields || {})
        assert_equal outcome == :stale ? [200, "x", 70] : [status, "failed", nil], [answered.status, answered.body, answered.age]
      end
    end
  end

  def test_stale_if_error_is_used_when_the_application_raises
    world = failing_world("max-age=60, stale-if-error=20") { raise "away" }
    errors = StringIO.new
    answered = world.get("/", {}, env: { "rack.errors" => errors })
    assert_equal [200, "x", "Castellan; fwd=stale; detail=error"], [answered.status, answered.body, answered.note]
    assert_includes errors.string, "away"
  end

  def test_other_statuses_are_no_failures
    [404, 429, 501, 505].each do |status|
      world = failing_world("max-age=60, stale-if-error=20") { [status, {}, ["no"]] }
      assert_equal status, world.get.status
    end
  end

  def test_an_exception_is_raised_where_nothing_stale_may_be_used
    world = failing_world("max-age=60") { raise ArgumentError, "away" }
    assert_raises(ArgumentError) { world.get }
  end

  def test_must_revalidate_without_the_origin_server_is_504
    world = failing_world("max-age=60, must-revalidate") { raise Errno::ECONNREFUSED }
    errors = StringIO.new
    answered = world.get("/", {}, env: { "rack.errors" => errors })
    assert_equal [504, "Castellan; detail=disconnected"], [answered.status, answered.note]
    assert_includes errors.string, "ECONNREFUSED"
  end

  # sentence, Cache-Control of the response and of the client, whether the stale response is sent
  [
    ["serves stale", "max-age=60", nil, true], ["serves stale also after stale-if-error", "max-age=60, stale-if-error=5", nil, true],
    ["does not serve stale beyond max-stale", "max-age=60", "max-stale=5", false],
    ["does not serve stale to no-cache", "max-age=60", "no-cache", false],
    ["does not serve stale to max-age", "max-age=60", "max-age=100", false],
    ["does not serve stale to min-fresh", "max-age=60", "min-fresh=1", false]
  ].each do |sentence, value, client, stale|
    define_method("test_RFC 9111 §4.2.4: an application without its server #{sentence}") do
      world = failing_world(value) { raise Errno::ECONNREFUSED }
      get = -> { world.get("/", { "Cache-Control" => client }.compact, env: { "rack.errors" => StringIO.new }) }
      next assert_raises(Errno::ECONNREFUSED, &get) unless stale

      assert_equal [200, "x", "Castellan; fwd=stale; detail=error"], get.call.then { |answer| [answer.status, answer.body, answer.note] }
    end
  end

  private

  def failing_world(value, &failure)
    world = Castellan::CachedApplication.new { [200, { "cache-control" => value, "etag" => '"a"' }, ["x"]] }
    world.get
    world.later(70)
    world.answer(&failure)
    world
  end
end
