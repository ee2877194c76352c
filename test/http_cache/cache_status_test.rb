# frozen_string_literal: true

require "test_helper"
require "active_support/notifications"
require "support/cached_application"

# RFC 9211: Cache-Status; and what the middleware does with paths that it leaves alone.
class HTTPCacheStatusTest < Minitest::Test
  FRESH = { "cache-control" => "max-age=60", "etag" => '"a"' }.freeze

  def test_the_members_of_cache_status
    world = Castellan::CachedApplication.new { |env| env["HTTP_IF_NONE_MATCH"] == '"a"' ? [304, {}, []] : [200, FRESH.dup, ["x"]] }
    assert_equal "Castellan; fwd=uri-miss; stored", world.get.note
    world.later(4)
    assert_equal "Castellan; hit; ttl=56", world.get.note
    assert_equal "Castellan; fwd=request; fwd-status=304", world.get("/", { "Cache-Control" => "no-cache" }).note
    world.later(100)
    assert_equal "Castellan; hit; ttl=-40", world.get("/", { "Cache-Control" => "max-stale" }).note
    assert_equal "Castellan; fwd=stale; fwd-status=304", world.get.note
    assert_equal "Castellan; fwd=bypass", world.get("/", { "Authorization" => "Basic x" }).note
    assert_equal "Castellan; fwd=method", world.post.note
    assert_equal "Castellan; detail=only-if-cached", world.get("/", { "Cache-Control" => "only-if-cached" }).note
  end

  # Options of the cache, fields of the first request, fields of the second, its note after a purge of the tag.
  [
    [{}, {}, {}, "uri-miss"], [{}, { "HTTP_X_REWRITE_URL" => "/b" }, { "HTTP_X_REWRITE_URL" => "/b" }, "uri-miss"],
    [{ vary: ["Accept"] }, { "HTTP_ACCEPT" => "a" }, { "HTTP_ACCEPT" => "a" }, "miss"],
    [{ vary: ["Accept"] }, { "HTTP_ACCEPT" => "a" }, { "HTTP_ACCEPT" => "b" }, "vary-miss"]
  ].each do |options, first, second, reason|
    define_method("test_RFC 9211 §2.2: after a purge of #{first} by its tag, #{second} is a #{reason}") do
      world = Castellan::CachedApplication.new(**options) { [200, { **FRESH, "surrogate-key" => "a" }, ["x"]] }
      world.get("/", {}, env: first)
      world.cache.purge_tags("a")
      world.later(1)
      assert_match(/\ACastellan; fwd=#{reason}(; stored)?\z/, world.get("/", {}, env: second).note)
    end
  end

  def test_a_response_for_other_forwarding_fields_is_no_vary_miss
    world = Castellan::CachedApplication.new { [200, FRESH.dup, ["x"]] }
    [{}, { "HTTP_X_REWRITE_URL" => "/b" }, { "HTTP_X_REWRITE_URL" => "/c" }].each do |env|
      assert_match(/fwd=uri-miss/, world.get("/", {}, env: env).note)
    end
  end

  def test_each_response_publishes_one_event
    fails = false
    world = Castellan::CachedApplication.new do |env|
      next [503, {}, ["down"]] if fails

      env["HTTP_IF_NONE_MATCH"] ? [304, {}, []] : [200, { **FRESH, "cache-control" => "max-age=60, stale-if-error=60" }, ["body"]]
    end
    assert_equal [{ layer: :http, outcome: :miss }], events { world.get }
    world.later(4)
    assert_equal [{ layer: :http, outcome: :hit, bytes: 4, age: 4.0 }], events { world.get }
    assert_equal([%i[http refresh]], events { world.get("/", { "Cache-Control" => "no-cache" }) }.map { |event| event.values.first(2) })
    world.later(70)
    assert_equal [{ layer: :http, outcome: :stale, bytes: 4, age: 70.0 }], events { world.get("/", { "Cache-Control" => "max-stale" }) }
    fails = true
    assert_equal [{ layer: :http, outcome: :error, bytes: 4, age: 70.0 }], events { world.get }
    assert_equal [{ layer: :http, outcome: :pass }], events { world.post }
  end

  def test_a_background_validation_publishes_an_event_of_its_own
    world = Castellan::CachedApplication.new do |env|
      env["HTTP_IF_NONE_MATCH"] ? [304, {}, []] : [200, { **FRESH, "cache-control" => "max-age=1, stale-while-revalidate=60" }, ["body"]]
    end
    world.get
    world.later(4)
    outcomes = events { world.get && world.cache.refreshes.wait }.map { |event| event.fetch(:outcome) }
    assert_equal %i[refresh stale], outcomes.sort
  end

  def test_members_of_caches_behind_this_one_come_first
    world = Castellan::CachedApplication.new { [200, { "cache-status" => ["Origin; hit", "CDN; fwd=miss"], **FRESH }, ["x"]] }
    assert_equal ["Origin; hit, CDN; fwd=miss, Castellan; fwd=uri-miss; stored", "Origin; hit, CDN; fwd=miss, Castellan; hit; ttl=60"],
                 [world.get.note, world.get.note]
  end

  def test_debug_adds_the_key_as_a_string
    world = Castellan::CachedApplication.new(cache_status: :debug) { [200, FRESH.dup, ["x"]] }
    note = world.get("/a?q=%22").note
    assert_equal ["Castellan"], Castellan::HTTPCache::StructuredField.list(note).map(&:to_s)
    assert_equal 'Castellan; fwd=uri-miss; stored; key="http://example.org/a?q=%22"', note
  end

  def test_it_can_be_switched_off
    world = Castellan::CachedApplication.new(cache_status: false) { [200, FRESH.dup, ["x"]] }
    2.times { assert_nil world.get.note }
    assert_equal 1, world.requests.size
  end

  # options, paths that the cache handles, paths that it does not
  [
    [{ only: "/api" }, %w[/api /api/posts], %w[/ /apix /other/api]],
    [{ only: ["/api/", "/feed"] }, %w[/api/posts /feed], %w[/api /feeds]],
    [{ except: %w[/admin] }, %w[/ /administration], %w[/admin /admin/x //admin /admin//x]],
    [{ only: "/api", except: "/api/me" }, %w[/api/posts], %w[/api/me /x]]
  ].each do |options, handled, untouched|
    define_method("test_#{options.inspect} chooses paths") do
      world = Castellan::CachedApplication.new(**options) { [200, FRESH.dup, ["x"]] }
      assert_equal handled, (handled + untouched).select { |path| world.get(path).note }
    end
  end

  def test_a_block_chooses_requests
    response = [200, FRESH.dup.freeze, ["x"].freeze].freeze
    cache = Castellan::HTTPCache.new(->(_env) { response }) { |env| env["HTTP_X_CACHE"] }
    assert_same response, cache.call(Rack::MockRequest.env_for("/"))
    assert cache.call(Rack::MockRequest.env_for("/", "HTTP_X_CACHE" => "1"))[1].key?("cache-status")
  end

  def test_castellan_off_passes_everything
    with_env("CASTELLAN" => "off") do
      response = [200, FRESH.dup.freeze, ["x"].freeze].freeze
      cache = Castellan::HTTPCache.new(->(_env) { response })
      2.times { assert_same response, cache.call(Rack::MockRequest.env_for("/")) }
    end
  end

  # option, value, a part of the message
  [
    [:max_body, 0, "max_body: must be a whole number of bytes above 0, got 0"], [:max_body, "1", "max_body: 1_048_576"],
    [:keep, -1, "keep: must be seconds, 0 or more, got -1; write for example keep: 86_400"], [:keep, Float::INFINITY, "got Infinity"],
    [:heuristic, "x", "heuristic: must be a share of the time since Last-Modified, 0 or more, or false, got \"x\"; " \
                      "write for example heuristic: 0.1"],
    [:longest_heuristic, nil, "longest_heuristic: must be seconds, 0 or more, got nil; write for example longest_heuristic: 86_400"],
    [:wait, Float::NAN, "wait: must be seconds, 0 or more, got NaN; write for example wait: 10"],
    [:cache_status, :on, "cache_status: must be true, false or :debug, got :on; write for example cache_status: true"],
    [:cache_status, nil, "cache_status: must be true, false or :debug, got nil"],
    [:client_directives, :no, "client_directives: must be true or false, got :no; write for example client_directives: true"],
    [:targeted, "a b", "targeted: must be names of response fields, got \"a b\"; write for example targeted: [\"CDN-Cache-Control\"]"],
    [:only, [], "only: must be path prefixes that begin with a slash, or nil for all paths, got []; write for example only: [\"/api\"]"],
    [:log, :warn, "Castellan::HTTPCache log: must respond to call, got :warn; write log: Rails.logger.method(:warn)"],
    [:set_cookie, :always, "set_cookie: must be :refuse or :explicit, got :always"], [:only, "api", "only: must be path prefixes"],
    [:except, [1], "except: must be path prefixes"],
    [:vary, "*", "vary: must be names of request fields, got \"*\""], [:vary, ["a b"], "vary: [\"Accept\"]"],
    [:tll, 1, "unknown keyword: :tll"]
  ].each do |option, value, message|
    define_method("test_#{option}: #{value.inspect} is refused at boot") do
      error = assert_raises(Castellan::ConfigurationError) { Castellan::HTTPCache.new(->(_env) {}, **{ option => value }) }
      assert_includes error.message, message
    end
  end

  private

  def events(&block)
    found = []
    subscriber = ->(*, payload) { found << payload.except(:milliseconds) }
    ActiveSupport::Notifications.subscribed(subscriber, "cache.castellan", &block)
    found
  end
end
