# frozen_string_literal: true

require "test_helper"
require "support/cached_application"

# RFC 9110 §14: ranges of stored responses.
class HTTPCacheRangesTest < Minitest::Test
  CONTENT = "0123456789"
  MODIFIED = "Sun, 01 Feb 2026 08:00:00 GMT"

  # Range, status, content, Content-Range
  [
    ["bytes=0-4", 206, "01234", "bytes 0-4/10"],
    ["bytes=5-", 206, "56789", "bytes 5-9/10"],
    ["bytes=-3", 206, "789", "bytes 7-9/10"],
    ["bytes=-30", 206, CONTENT, "bytes 0-9/10"],
    ["bytes=0-0", 206, "0", "bytes 0-0/10"],
    ["bytes=9-9", 206, "9", "bytes 9-9/10"],
    ["bytes=0-18446744073709551615", 206, CONTENT, "bytes 0-9/10"],
    ["bytes=8-99", 206, "89", "bytes 8-9/10"],
    ["BYTES=1-1", 206, "1", "bytes 1-1/10"],
    ["bytes= 1-1", 206, "1", "bytes 1-1/10"],
    ["bytes=1-1,", 206, "1", "bytes 1-1/10"],
    ["bytes=8-9, 50-60", 206, "89", "bytes 8-9/10"],
    ["bytes=10-", 416, "", "bytes */10"],
    ["bytes=10-20", 416, "", "bytes */10"],
    ["bytes=-0", 416, "", "bytes */10"],
    ["bytes=5-4", 200, CONTENT, nil],
    ["bytes=a-b", 200, CONTENT, nil],
    ["bytes=-", 200, CONTENT, nil],
    ["bytes=", 200, CONTENT, nil],
    ["bytes=1-2-3", 200, CONTENT, nil],
    ["bytes=0x1-2", 200, CONTENT, nil],
    ["bytes 0-4", 200, CONTENT, nil],
    ["lines=0-4", 200, CONTENT, nil],
    ["0-4", 200, CONTENT, nil]
  ].each do |range, status, content, content_range|
    define_method("test_RFC 9110 §14.2: #{range} is #{status} #{content_range}") do
      answered = world.tap(&:get).get("/", { "Range" => range })
      assert_equal [status, content, content_range], [answered.status, answered.body, answered["content-range"]]
      assert_equal content.bytesize.to_s, answered["content-length"]
      assert_equal 1, @world.requests.size
    end
  end

  def test_a_range_of_a_response_that_replaces_a_stale_one
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "etag" => '"a"' }, ["old"]] }
    world.get
    world.later(70)
    world.answer { [200, { "cache-control" => "max-age=60", "etag" => '"b"' }, [CONTENT]] }
    answered = world.get("/", { "Range" => "bytes=1-2" })
    assert_equal [206, "12", "bytes 1-2/10"], [answered.status, answered.body, answered["content-range"]]
  end

  def test_several_ranges_are_multipart
    answered = world.tap(&:get).get("/", { "Range" => "bytes=0-1,-2" })
    boundary = answered["content-type"][%r{\Amultipart/byteranges; boundary=(\h+)\z}, 1]
    expected = "--#{boundary}\r\ncontent-type: text/plain\r\ncontent-range: bytes 0-1/10\r\n\r\n01\r\n" \
               "--#{boundary}\r\ncontent-type: text/plain\r\ncontent-range: bytes 8-9/10\r\n\r\n89\r\n--#{boundary}--\r\n"
    assert_equal [206, expected, nil], [answered.status, answered.body, answered["content-range"]]
  end

  # If-Range, stored fields, status
  [
    ['"a"', { "etag" => '"a"' }, 206],
    ['"b"', { "etag" => '"a"' }, 200],
    ['W/"a"', { "etag" => 'W/"a"' }, 200],
    ['"a"', { "etag" => 'W/"a"' }, 200],
    ['"a"', {}, 200],
    [MODIFIED, { "last-modified" => MODIFIED }, 206],
    ["Sun, 01 Feb 2026 08:00:01 GMT", { "last-modified" => MODIFIED }, 200],
    [MODIFIED, { "last-modified" => MODIFIED, "date" => MODIFIED, "cache-control" => "max-age=99999999" }, 200],
    ["x", { "etag" => "x" }, 200]
  ].each do |condition, fields, status|
    define_method("test_RFC 9110 §13.1.5: If-Range: #{condition} with #{fields.inspect} is #{status}") do
      answered = world(fields).tap(&:get).get("/", { "Range" => "bytes=0-1", "If-Range" => condition })
      assert_equal [status, 1], [answered.status, @world.requests.size]
    end
  end

  def test_a_416_cannot_be_stored_by_another_cache
    fields = { "etag" => '"a"', "last-modified" => MODIFIED, "expires" => MODIFIED, "vary" => "accept",
               "cdn-cache-control" => "max-age=60" }
    headers = world(fields).tap(&:get).get("/", { "Range" => "bytes=10-" }).headers
    assert_equal %w[age cache-control cache-status content-length content-range date vary], headers.keys.sort
    assert_equal "no-store", headers["cache-control"]
  end

  def test_the_digest_of_the_content_is_not_sent_with_a_part
    world("content-digest" => "sha-256=:eA==:", "repr-digest" => "sha-256=:eA==:").get
    digests = [{}, { "Range" => "bytes=0-1" }, { "Range" => "bytes=10-" }].map do |fields|
      @world.get("/", fields).headers.slice("content-digest", "repr-digest").keys
    end
    assert_equal [%w[content-digest repr-digest], %w[repr-digest], %w[repr-digest]], digests
  end

  def test_a_condition_comes_before_the_range
    assert_equal 304, world("etag" => '"a"').tap(&:get).get("/", { "Range" => "bytes=0-1", "If-None-Match" => '"a"' }).status
  end

  def test_empty_content_has_no_ranges
    empty = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }, []] }
    empty.get
    ["bytes=0-", "bytes=-5"].each { |range| assert_equal 200, empty.get("/", { "Range" => range }).status }
  end

  def test_head_and_other_statuses_have_no_ranges
    assert_equal 200, world.tap(&:get).head("/", { "Range" => "bytes=0-1" }).status
    missing = Castellan::CachedApplication.new { [404, { "cache-control" => "max-age=60" }, [CONTENT]] }
    assert_equal [404, CONTENT], missing.tap(&:get).get("/", { "Range" => "bytes=0-1" }).to_a.values_at(0, 2)
  end

  def test_without_a_stored_response_the_range_is_forwarded_and_its_part_not_stored
    parts = Castellan::CachedApplication.new { |env| [206, { "cache-control" => "max-age=60", "content-range" => "bytes 0-1/10" }, [env["HTTP_RANGE"]]] }
    2.times { assert_equal [206, "bytes=0-1"], parts.get("/", { "Range" => "bytes=0-1" }).to_a.values_at(0, 2) }
    assert_equal 2, parts.requests.size
  end

  private

  def world(fields = {})
    @world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "content-type" => "text/plain" }.merge(fields), [CONTENT]] }
  end
end
