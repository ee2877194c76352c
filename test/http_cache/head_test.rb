# frozen_string_literal: true

require "test_helper"
require "support/cached_application"

# RFC 9110 §9.3.2: a response to HEAD is stored for later HEAD requests.
class HTTPCacheHeadTest < Minitest::Test
  FIELDS = { "cache-control" => "max-age=60", "etag" => '"a"', "content-length" => "7" }.freeze

  def test_a_response_to_head_answers_head_and_no_get
    world = world_with({})
    world.head
    again = world.head
    assert_equal [200, "", "7", true, 1], [again.status, again.body, again["content-length"], again.hit?, world.requests.size]
    got = world.get
    assert_equal [200, "content", "Castellan; fwd=partial; stored", nil],
                 [got.status, got.body, got.note, world.requests.last["HTTP_IF_NONE_MATCH"]]
    assert_equal [[true, "content"], [true, ""]], [world.get, world.head].map { |answer| [answer.hit?, answer.body] }
    refute_predicate world_with({}).tap(&:head).get("/", { "Range" => "bytes=0-1" }), :hit?
  end

  def test_the_length_of_the_content_is_not_invented
    world = world_with({ "content-length" => nil })
    assert_equal [nil, nil], Array.new(2) { world.head["content-length"] }
  end

  # Puma would send the length of an empty Array.
  def test_the_body_is_no_array
    cache = Castellan::HTTPCache.new(->(_env) { [200, { "cache-control" => "max-age=60" }, ["content"]] })
    bodies = Array.new(2) { cache.call(Rack::MockRequest.env_for("http://example.org/", method: "HEAD")).last }
    assert_equal [["content"], []], bodies.map(&:to_a)
    refute_respond_to bodies.last, :to_ary
  end

  def test_a_stale_one_is_validated_by_head
    world = world_with({})
    world.head
    world.later(70)
    world.answer { |env| [env["HTTP_IF_NONE_MATCH"] == '"a"' ? 304 : 500, { "etag" => '"a"' }, []] }
    assert_equal [200, "Castellan; fwd=stale; fwd-status=304"], world.head.then { |answer| [answer.status, answer.note] }
    assert_predicate world.head, :hit?
    world.answer { [200, {}, ["new"]] }
    assert_equal "new", world.get.body
  end

  # fields and status of the second HEAD response, whether the third is a hit
  [[{ "etag" => '"b"' }, 200, true], [{ "cache-control" => "no-store" }, 200, false], [{ "cache-control" => nil }, 400, false]]
    .each do |fields, status, hit|
    define_method("test_a HEAD response with #{fields} and #{status} replaces an earlier one#{" by nothing" unless hit}") do
      world = world_with({})
      world.head
      world.later(70)
      world.answer { [status, { **FIELDS, **fields }.compact, []] }
      world.head
      answered = world.head("/", { "Cache-Control" => "max-stale" })
      assert_equal [status, hit], [answered.status, answered.hit?]
    end
  end

  def test_a_condition_of_the_client_is_evaluated
    world = world_with({})
    world.head
    assert_equal [304, true], world.head("/", { "If-None-Match" => '"a"' }).then { |answer| [answer.status, answer.hit?] }
    world.later(70)
    world.answer { [200, { **FIELDS, "etag" => '"b"' }, []] }
    answered = world.head("/", { "If-None-Match" => '"b"' })
    assert_equal [304, "Castellan; fwd=stale; stored; fwd-status=200"], [answered.status, answered.note]
  end

  def test_it_replaces_neither_a_stored_get_nor_a_part
    world = world_with({ "cache-control" => "public, max-age=60" })
    world.get
    world.head("/", { "Cache-Control" => "no-cache" })
    assert_predicate world.get, :hit?
    part = world_with({})
    part.answer { [206, { **FIELDS, "content-range" => "bytes 0-6/9" }, ["content"]] }
    part.get("/", { "Range" => "bytes=0-6" })
    part.answer { [200, { **FIELDS, "content-length" => "9" }, []] }
    part.head
    assert_predicate part.get("/", { "Range" => "bytes=0-6" }), :hit?
  end

  # The stored response must not be used for the request, but the new one may be stored.
  def test_head_and_parts_for_credentials_leave_a_response_that_is_not_for_them
    credentials = { "Authorization" => "Basic x" }
    world = world_with({ "cache-control" => "max-age=60" })
    world.get
    world.answer { [200, { **FIELDS, "cache-control" => "public, max-age=60" }, []] }
    assert_equal "Castellan; fwd=bypass", world.head("/", credentials).note
    world.answer { [206, { **FIELDS, "cache-control" => "public, max-age=60", "content-range" => "bytes 0-6/9" }, ["content"]] }
    assert_equal "Castellan; fwd=bypass", world.get("/", { "Range" => "bytes=0-6", **credentials }).note
    assert_equal ["content", true], world.get.then { |answer| [answer.body, answer.hit?] }
  end

  # Set-Cookie is a sign that the other fields are personal, too.
  def test_a_head_response_with_set_cookie_updates_nothing
    world = world_with({ "x-user" => "nobody" })
    world.get
    world.answer { [200, { **FIELDS, "x-user" => "ada", "set-cookie" => "session=1" }, []] }
    assert_equal "ada", world.head("/", { "Cache-Control" => "no-cache" })["x-user"]
    assert_equal ["nobody", true], world.get.then { |answer| [answer["x-user"], answer.hit?] }
    empty = world_with({ "set-cookie" => "session=1" })
    2.times { assert_equal "Castellan; fwd=uri-miss", empty.head.note }
  end

  def test_a_head_response_with_set_cookie_removes_a_get_with_other_content
    world = world_with({ "etag" => '"1"' })
    world.get
    world.answer { [200, { **FIELDS, "etag" => '"2"', "set-cookie" => "session=1" }, []] }
    world.head("/", { "Cache-Control" => "no-cache" })
    world.answer { [200, { **FIELDS, "etag" => '"2"' }, ["CONTENT"]] }
    assert_equal ["CONTENT", false], world.get.then { |answer| [answer.body, answer.hit?] }
  end

  def test_a_part_is_no_response_to_head
    world = world_with({})
    world.answer { [206, { **FIELDS, "content-range" => "bytes 0-6/9" }, []] }
    assert_equal [nil, nil], Array.new(2) { world.head["age"] }
  end

  # A complete response is preferred, even if it is older.
  def test_a_head_response_with_another_vary_does_not_hide_a_get
    request = { "Foo" => "1", "Bar" => "1" }
    world = Castellan::CachedApplication.new { [200, { **FIELDS, "vary" => "foo, bar" }, []] }
    world.head("/", request)
    world.answer { [200, { **FIELDS, "vary" => "foo", "date" => world.date(-10) }, ["content"]] }
    2.times { |time| assert_equal ["content", time == 1], world.get("/", request).then { |answer| [answer.body, answer.hit?] } }
  end

  private

  def world_with(fields)
    Castellan::CachedApplication.new { |env| [200, { **FIELDS, **fields }.compact, env["REQUEST_METHOD"] == "HEAD" ? [] : ["content"]] }
  end
end
