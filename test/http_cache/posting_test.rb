# frozen_string_literal: true

require "test_helper"
require "support/cached_application"
require "cache/broken_store"

# RFC 9110 §9.3.3: a response to POST that is the new state of its URI is stored for later GET requests.
class HTTPCachePostingTest < Minitest::Test
  NEW = { "cache-control" => "max-age=60", "content-location" => "/a?b=1" }.freeze
  public_one = { "cache-control" => "public, max-age=60" }
  cookie = { "Cookie" => "session=1" }
  credentials = { "Authorization" => "Basic x" }
  modified = { "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT", "date" => "Sun, 01 Mar 2026 12:00:00 GMT", "cache-control" => nil }

  # sentence, fields of the response, whether it is stored, its status, fields of both requests
  [
    ["max-age", {}, true],
    ["s-maxage", { "cache-control" => "s-maxage=60" }, true],
    ["Expires", { "cache-control" => nil, "expires" => "Thu, 18 Aug 2050 02:01:18 GMT" }, true],
    ["a targeted field", { "cache-control" => nil, "cdn-cache-control" => "max-age=60" }, true],
    ["an absolute Content-Location", { "content-location" => "HTTP://example.org:80/a?b=1" }, true],
    ["a relative Content-Location", { "content-location" => "a?b=1" }, true],
    ["a cookie and explicit freshness", {}, true, 200, cookie],
    ["Authorization and public", public_one, true, 200, credentials],
    ["no freshness", { "cache-control" => nil }, false],
    ["a heuristic", modified, false],
    ["public and a heuristic", modified.merge("cache-control" => "public"), false],
    ["no Content-Location", { "content-location" => nil }, false],
    ["another Content-Location", { "content-location" => "/a" }, false],
    ["a Content-Location of another origin", { "content-location" => "http://example.com/a?b=1" }, false],
    ["no-store", { "cache-control" => "no-store, max-age=60" }, false],
    ["private", { "cache-control" => "private, max-age=60" }, false],
    ["Set-Cookie", { **public_one, "set-cookie" => "session=1" }, false],
    ["Vary: *", { "vary" => "*" }, false],
    ["Authorization", {}, false, 200, credentials],
    ["no-store of the request", {}, false, 200, { "Cache-Control" => "no-store" }],
    *[201, 202, 206, 303, 404, 500].map { |status| ["status #{status}", {}, false, status] }
  ].each do |sentence, fields, stored, status, request|
    define_method("test_RFC 9110 §9.3.3: POST with #{sentence} is #{"not " unless stored}stored") do
      world = Castellan::CachedApplication.new { [status || 200, { **NEW, **fields }.compact, ["posted"]] }
      posted = world.post("/a?b=1", request || {}, input: "form")
      assert_equal ["posted", "Castellan; fwd=method#{"; stored" if stored}"], [posted.body, posted.note]
      world.answer { [200, {}, ["new"]] }
      answered = world.get("/a?b=1", request || {})
      assert_equal stored ? ["posted", true] : ["new", false], [answered.body, answered.hit?]
    end
  end

  %w[PUT PATCH DELETE FOO QUERY OPTIONS].each do |name|
    define_method("test_a response to #{name} is not stored") do
      world = Castellan::CachedApplication.new { [200, NEW.dup, ["x"]] }
      assert_equal "Castellan; fwd=method", world.call(name, "/a?b=1").note
      refute_predicate world.get("/a?b=1"), :hit?
    end
  end

  def test_no_post_is_answered_from_the_cache
    world = Castellan::CachedApplication.new { [200, NEW.dup, ["x"]] }
    world.get("/a?b=1")
    3.times { world.post("/a?b=1") }
    assert_equal 4, world.requests.size
  end

  def test_it_replaces_every_variant_and_is_one_itself
    number = 0
    world = Castellan::CachedApplication.new { [200, { **NEW, "vary" => "accept" }, [(number += 1).to_s]] }
    %w[x y].each { |type| world.get("/a?b=1", { "Accept" => type }) }
    world.post("/a?b=1", { "Accept" => "x" })
    answers = %w[x y].map { |type| world.get("/a?b=1", { "Accept" => type }) }
    assert_equal([["3", true], ["4", false]], answers.map { |answer| [answer.body, answer.hit?] })
  end

  def test_a_streamed_response_is_stored_and_validated
    world = Castellan::CachedApplication.new { [200, { **NEW, "etag" => '"a"' }, %w[a b].each] }
    assert_equal "ab", world.post("/a?b=1").body
    world.later(70)
    world.answer { |env| [env["HTTP_IF_NONE_MATCH"] == '"a"' ? 304 : 500, { "etag" => '"a"' }, []] }
    assert_equal [200, "ab"], world.get("/a?b=1").to_a.values_at(0, 2)
  end

  # The application may have handled the other request later.
  def test_it_is_not_stored_if_another_request_has_changed_the_uri_meanwhile
    nested = false
    world = Castellan::CachedApplication.new do
      unless nested
        nested = true
        world.post("/a?b=1")
      end
      [200, NEW.dup, ["x"]]
    end
    assert_equal "Castellan; fwd=method", world.post("/a?b=1").note
    refute_predicate world.get("/a?b=1"), :hit?
  end

  def test_a_read_that_began_before_it_does_not_replace_it
    world = Castellan::CachedApplication.new do |env|
      next [200, NEW.dup, ["new"]] if env["REQUEST_METHOD"] == "POST"

      world.post("/a?b=1")
      [200, NEW.dup, ["old"]]
    end
    assert_equal "old", world.get("/a?b=1").body
    assert_equal ["new", true], world.get("/a?b=1").then { |answer| [answer.body, answer.hit?] }
  end

  def test_a_path_that_looks_like_another_with_a_query_is_not_stored_for_it
    world = Castellan::CachedApplication.new { [200, NEW.dup, ["x"]] }
    world.post("/", {}, env: { "PATH_INFO" => "/a?b=1" })
    refute_predicate world.get("/a?b=1"), :hit?
  end

  def test_it_is_not_stored_while_the_store_fails
    store = BrokenStore.new
    world = Castellan::CachedApplication.new(store: store, log: ->(_line) {}) { [200, NEW.dup, ["x"]] }
    store.broken = true
    assert_equal ["x", "Castellan; fwd=method"], world.post("/a?b=1").then { |answer| [answer.body, answer.note] }
  end

  # A response that a client's forwarding fields may have changed is only for requests with the same fields.
  def test_it_poisons_no_other_client
    world = Castellan::CachedApplication.new { |env| [200, NEW.dup, [env["HTTP_X_FORWARDED_HOST"].to_s]] }
    world.post("/a?b=1", { "X-Forwarded-Host" => "evil.org/" })
    assert_equal ["", false], world.get("/a?b=1").then { |answer| [answer.body, answer.hit?] }
  end
end
