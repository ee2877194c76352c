# frozen_string_literal: true

require "test_helper"
require "support/cached_application"

# RFC 9111 §3.3: storing partial responses; §3.4: combining them.
class HTTPCachePartsTest < Minitest::Test
  CONTENT = "0123456789"
  FIELDS = { "cache-control" => "max-age=60", "etag" => '"a"', "content-type" => "text/plain" }.freeze

  # the stored range, that of the next request, whether the part answers it
  [
    ["bytes=2-6", "bytes=2-6", true], ["bytes=2-6", "bytes=3-5", true], ["bytes=2-6", "bytes=6-6", true],
    ["bytes=2-6", "bytes=1-6", false], ["bytes=2-6", "bytes=2-7", false], ["bytes=2-6", "bytes=2-", false],
    ["bytes=2-6", "bytes=-1", false], ["bytes=2-6", "bytes=2-3,5-6", false], ["bytes=2-6", "bytes=90-", false],
    ["bytes=2-6", "bytes=x", false], ["bytes=2-6", nil, false],
    ["bytes=5-", "bytes=7-", true], ["bytes=5-", "bytes=-3", true], ["bytes=5-", "bytes=8-99", true], ["bytes=-5", "bytes=5-5", true]
  ].each do |stored, range, hit|
    define_method("test_RFC 9111 §3.3: #{range.inspect} is #{"not " unless hit}answered from #{stored}") do
      world = world_with(stored)
      request = { "Range" => range }.compact
      next assert_same_answer(world, range) if hit

      answered = world.get("/", request)
      assert_equal 2, world.requests.size
      assert_equal "Castellan; fwd=partial", answered.note.delete_suffix("; stored")
    end
  end

  # The ranges of the requests, ranges that are then answered from the cache, and others that are not
  [
    [%w[bytes=2-4 bytes=5-6], %w[bytes=2-6 bytes=4-5], %w[bytes=1-2 bytes=6-7]],
    [%w[bytes=5-6 bytes=2-4], %w[bytes=2-6], %w[bytes=1-2]],
    [%w[bytes=2-4 bytes=3-6], %w[bytes=2-6], %w[bytes=1-2]],
    [%w[bytes=3-6 bytes=1-4], %w[bytes=1-6], %w[bytes=0-1]],
    [%w[bytes=2-6 bytes=3-9], %w[bytes=2-9], %w[bytes=1-2]],
    [%w[bytes=3-4 bytes=1-8], %w[bytes=1-8], %w[bytes=0-1]],
    [%w[bytes=1-2 bytes=5-6], %w[bytes=5-6], %w[bytes=1-2]],
    [%w[bytes=0-4 bytes=5-], [nil, "bytes=1-8", "bytes=-3", "bytes=0-0,9-9"], []],
    [%w[bytes=5- bytes=0-4], [nil, "bytes=0-"], []],
    [%w[bytes=0-9], [nil], []]
  ].each do |ranges, hits, others|
    define_method("test_RFC 9111 §3.4: #{ranges.join(" and ")} answer #{hits.inspect} and not #{others.inspect}") do
      world = world_with(*ranges)
      hits.each { |range| assert_same_answer(world, range) }
      count = world.requests.size
      others.each { |range| assert_equal "Castellan; fwd=partial", world.get("/", { "Range" => range }).note[/.*partial/] }
      assert_equal [ranges.size, others.size], [count, world.requests.size - count]
    end
  end

  # RFC 9110 §15.3.7.2
  def test_several_parts_with_a_content_range_are_not_stored
    world = Castellan::CachedApplication.new do
      [206, { **FIELDS, "content-type" => "multipart/byteranges; boundary=x", "content-range" => "bytes 0-2/3" }, ["abc"]]
    end
    refute_predicate Array.new(2) { world.get("/", { "Range" => "bytes=0-2" }) }.last, :hit?
  end

  def test_a_completed_response_is_a_200_with_its_own_length
    answered = world_with("bytes=0-4", "bytes=5-9").get
    assert_equal [200, CONTENT, "10", nil, "text/plain", true],
                 [answered.status, answered.body, answered["content-length"], answered["content-range"], answered["content-type"],
                  answered.hit?]
  end

  def test_the_fields_of_the_newest_part_count
    world = world_with("bytes=0-4") { { "x-a" => "1", "x-b" => "1", "content-digest" => "sha-256=:eA==:" } }
    world.later(30)
    world.answer { |env| part(env, { "x-a" => "2", "cache-control" => "max-age=100" }) }
    world.get("/", { "Range" => "bytes=5-" })
    world.later(90)
    assert_equal ["2", "1", nil, 90, true], world.get.then { |got| [got["x-a"], got["x-b"], got["content-digest"], got.age, got.hit?] }
  end

  # fields of the part, whether it is stored
  [
    [{}, true], [{ "etag" => nil }, true], [{ "etag" => 'W/"a"' }, true],
    [{ "etag" => nil, "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT" }, true], [{ "cache-control" => nil }, false],
    [{ "cache-control" => "public", "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT" }, true],
    [{ "cache-control" => nil, "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT" }, true],
    [{ "cache-control" => nil, "last-modified" => "Sun, 01 Mar 2026 12:00:00 GMT" }, false],
    [{ "cache-control" => "no-store, max-age=60" }, false], [{ "cache-control" => "private, max-age=60" }, false],
    [{ "set-cookie" => "a=1" }, false], [{ "cache-control" => "max-age=60, must-understand" }, true],
    [{ "content-range" => nil }, false], [{ "content-range" => "bytes 0-4/*" }, false], [{ "content-range" => "bytes 0-3/10" }, false],
    [{ "content-range" => "bytes 0-4/4" }, false], [{ "content-range" => "bytes 4-0/10" }, false],
    [{ "content-range" => "x 0-4/10" }, false],
    [{ "content-range" => "bytes */10" }, false], [{ "content-range" => ["bytes 0-4/10", "bytes 0-4/10"] }, false]
  ].each do |fields, stored|
    define_method("test_RFC 9111 §3.3: a part with #{fields} is #{"not " unless stored}stored") do
      world = world_with("bytes=0-4") { fields }
      assert_equal stored, world.get("/", { "Range" => "bytes=0-4" }).hit?
    end
  end

  def test_parts_of_another_representation_are_not_combined
    world = world_with("bytes=0-4")
    world.answer { |env| part(env, { "etag" => '"b"' }, "abcdefghij") }
    assert_equal "fghij", world.get("/", { "Range" => "bytes=5-" }).body
    refute_predicate world.get("/", { "Range" => "bytes=0-4" }), :hit?
    longer = world_with("bytes=0-4")
    longer.answer { |env| part(env, {}, "#{CONTENT}abc") }
    longer.get("/", { "Range" => "bytes=5-" })
    refute_predicate longer.get("/", { "Range" => "bytes=0-4" }), :hit?
  end

  # RFC 9111 §3.4
  def test_parts_without_a_strong_validator_are_not_combined
    [nil, 'W/"a"'].each do |etag|
      world = world_with("bytes=0-4", "bytes=5-7") { { "etag" => etag, "last-modified" => "Sun, 01 Feb 2026 08:00:00 GMT" } }
      assert_same_answer(world, "bytes=6-7")
      assert_equal "Castellan; fwd=partial; stored", world.get("/", { "Range" => "bytes=4-5" }).note
    end
  end

  def test_a_part_does_not_replace_a_whole_response
    world = Castellan::CachedApplication.new { [200, FIELDS.except("etag"), [CONTENT]] }
    world.get
    world.answer { |env| part(env) }
    assert_equal "01", world.get("/", { "Range" => "bytes=0-1", "Cache-Control" => "no-cache" }).body
    assert_equal [CONTENT, true], world.get.then { |got| [got.body, got.hit?] }
  end

  def test_a_whole_response_replaces_a_part
    world = world_with("bytes=0-4")
    assert_equal [CONTENT, "Castellan; fwd=partial; stored"], world.get.then { |got| [got.body, got.note] }
    assert_same_answer(world, "bytes=3-7")
    refute(world.requests.any? { |env| env.key?("HTTP_IF_NONE_MATCH") })
  end

  def test_a_stale_part_is_validated
    world = world_with("bytes=0-4")
    world.later(70)
    world.answer { |env| [env["HTTP_IF_NONE_MATCH"] == '"a"' && !env.key?("HTTP_RANGE") ? 304 : 500, { "etag" => '"a"' }, []] }
    answered = world.get("/", { "Range" => "bytes=1-2" })
    assert_equal [206, "12", "bytes 1-2/10", "Castellan; fwd=stale; fwd-status=304"],
                 [answered.status, answered.body, answered["content-range"], answered.note]
    assert_predicate world.get("/", { "Range" => "bytes=0-4" }), :hit?
  end

  def test_a_part_that_nobody_requested_is_passed
    world = world_with("bytes=0-4")
    world.later(70)
    world.answer { |env| part(env.merge("HTTP_RANGE" => "bytes=5-9")) }
    2.times do
      answered = world.get("/", { "Range" => "bytes=1-2" })
      assert_equal [206, "56789", "bytes 5-9/10"], [answered.status, answered.body, answered["content-range"]]
    end
  end

  def test_a_stale_part_replaces_no_error_of_a_request_for_more
    world = world_with("bytes=0-4") { { "cache-control" => "max-age=5, stale-if-error=60" } }
    world.later(10)
    world.answer { [503, {}, ["down"]] }
    statuses = [{ "Range" => "bytes=0-1" }, { "Range" => "bytes=0-5" }, {}].map { |fields| world.get("/", fields).status }
    assert_equal [206, 503, 503], statuses
  end

  # If-Range, the status of the response
  [['"a"', 206, true], ['"b"', 200, false], ['W/"a"', 200, false]].each do |condition, status, hit|
    define_method("test_If-Range: #{condition} of a part is #{status}") do
      world = world_with("bytes=0-4")
      world.answer { whole_response }
      answered = world.get("/", { "Range" => "bytes=0-1", "If-Range" => condition })
      assert_equal [status, hit], [answered.status, answered.hit?]
    end
  end

  # A response to If-Range has no other fields than those of the example (RFC 9110 §15.3.7).
  def test_the_response_to_if_range_is_stored_only_together_with_an_earlier_one
    { %w[bytes=0-4] => [true, "text/plain"], %w[bytes=0-3] => [false, nil], [] => [false, nil] }.each do |ranges, expected|
      world = world_with(*ranges)
      world.answer { |env| part(env, { "content-type" => nil }) }
      world.get("/", { "Range" => "bytes=5-", "If-Range" => '"a"' })
      answered = world.get("/", { "Range" => "bytes=5-" })
      assert_equal expected, [answered.hit?, answered["content-type"]]
    end
  end

  def test_a_condition_is_evaluated_for_a_range_of_a_part_only
    world = world_with("bytes=0-4")
    assert_equal [304, true], world.get("/", { "Range" => "bytes=0-1", "If-None-Match" => '"a"' }).then { |got| [got.status, got.hit?] }
    assert_equal [200, false], world.get("/", { "If-None-Match" => '"b"' }).then { |got| [got.status, got.hit?] }
  end

  def test_head_is_not_answered_from_a_part_and_updates_or_deletes_it
    [['"a"', "10", true], ['"a"', "11", false], ['"b"', "10", false]].each do |tag, length, hit|
      world = world_with("bytes=0-4")
      fields = { **FIELDS, "etag" => tag, "content-length" => length, "x-new" => "1" }
      world.answer { |env| env["REQUEST_METHOD"] == "HEAD" ? [200, fields, []] : part(env) }
      answered = world.head("/", { "Range" => "bytes=0-4" })
      assert_equal [200, "Castellan; fwd=partial", length], [answered.status, answered.note, answered["content-length"]]
      assert_equal [hit, hit ? "1" : nil], world.get("/", { "Range" => "bytes=0-4" }).then { |got| [got.hit?, got["x-new"]] }
    end
  end

  def test_parts_are_of_one_variant_and_invalidated_with_their_uri
    world = world_with("bytes=0-4") { |env| { "vary" => "accept", "x-a" => env["HTTP_ACCEPT"] } }
    refute_predicate world.get("/", { "Range" => "bytes=0-4", "Accept" => "x" }), :hit?
    assert_equal [true, "x"], world.get("/", { "Range" => "bytes=0-4", "Accept" => "x" }).then { |got| [got.hit?, got["x-a"]] }
    world.post
    refute_predicate world.get("/", { "Range" => "bytes=0-4", "Accept" => "x" }), :hit?
  end

  def test_a_combined_part_has_the_tags_of_both
    world = world_with("bytes=0-4") { { "surrogate-key" => "one" } }
    world.answer { |env| part(env) }
    world.get("/", { "Range" => "bytes=5-" })
    assert_predicate world.get, :hit?
    world.later(1)
    world.cache.purge_tags("one")
    refute_predicate world.get, :hit?
  end

  def test_parts_that_are_together_too_long_are_not_combined
    world = Castellan::CachedApplication.new(max_body: 8) { |env| part(env) }
    %w[bytes=0-4 bytes=5-9].each { |range| world.get("/", { "Range" => range }) }
    assert_equal([true, false], %w[bytes=5-9 bytes=0-4].map { |range| world.get("/", { "Range" => range }).hit? })
  end

  def test_a_streamed_part_is_stored
    world = Castellan::CachedApplication.new { |env| part(env).then { |status, fields, body| [status, fields, body.each] } }
    world.get("/", { "Range" => "bytes=0-4" })
    assert_equal ["234", true], world.get("/", { "Range" => "bytes=2-4" }).then { |got| [got.body, got.hit?] }
  end

  # The answer to If-Range has too few fields to be stored alone (RFC 9110 §15.3.7).
  def test_a_part_that_would_become_too_long_together_is_not_stored_alone
    world = Castellan::CachedApplication.new(max_body: 5) { |env| part(env) }
    world.get("/", { "Range" => "bytes=0-3" })
    world.get("/", { "Range" => "bytes=4-7", "If-Range" => FIELDS["etag"] })
    assert_equal [["0123", true], ["4567", false]],
                 %w[0-3 4-7].map { |range| world.get("/", { "Range" => "bytes=#{range}" }).then { |got| [got.body, got.hit?] } }
  end

  # Random ranges of a content that changes: each answer is what the application would send.
  def test_random_ranges_are_those_of_one_version
    random = Random.new(Minitest.seed)
    version = 0
    content = -> { (version.to_s * 12)[0, 10] + CONTENT }
    world = Castellan::CachedApplication.new { |env| part(env, { "etag" => "\"#{version}\"", "cache-control" => "max-age=3" }, content.call) }
    hits = 2_000.times.count do
      version = random.rand(10) if random.rand(12).zero? && world.later(4)
      world.later(1) if random.rand(6).zero?
      from = random.rand(20)
      range = ["bytes=#{from}-#{from + random.rand(8)}", "bytes=#{from}-", "bytes=-#{from + 1}", nil].sample(random: random)
      answered = world.get("/", { "Range" => range }.compact)
      first, last = answered["content-range"].to_s.scan(/\d+/).first(2).map(&:to_i)
      assert_equal answered.status == 206 ? content.call[first..last] : content.call, answered.body, range
      answered.hit?
    end
    assert_operator hits, :>, 200
  end

  private

  # An application that sends ranges, after requests for these.
  def world_with(*ranges, &fields)
    world = Castellan::CachedApplication.new { |env| part(env, fields ? fields.call(env) : {}) }
    ranges.each { |range| world.get("/", { "Range" => range }) }
    world
  end

  def whole = Castellan::CachedApplication.new { whole_response }.tap(&:get)
  def whole_response = [200, FIELDS.dup, [CONTENT]]

  def assert_same_answer(world, range)
    request = { "Range" => range }.compact
    expected, answered = [whole, world].map { |one| one.get("/", request) }
    bodies = [expected, answered].map { |answer| answer.body.gsub(/\h{32}/, "") }
    assert_equal [expected.status, bodies.first, expected["content-range"]], [answered.status, bodies.last, answered["content-range"]]
    assert_predicate answered, :hit?
  end

  def part(env, fields = {}, content = CONTENT)
    return [200, { **FIELDS, **fields.except("content-range") }.compact, [content]] unless env["HTTP_RANGE"]

    ranges = Castellan::HTTPCache::Ranges.parse(env["HTTP_RANGE"], content.bytesize)
    return [200, { **FIELDS, **fields.except("content-range") }.compact, [content]] unless ranges&.one?

    offset, length = ranges.first
    range = "bytes #{offset}-#{offset + length - 1}/#{content.bytesize}"
    [206, { **FIELDS, "content-range" => range, **fields }.compact, [content[offset, length]]]
  end
end
