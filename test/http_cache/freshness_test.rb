# frozen_string_literal: true

require "test_helper"
require "support/cache_rows"

# RFC 9111 §4.2 and the directives of responses: how long a response is fresh.
class HTTPCacheFreshnessTest < Minitest::Test
  extend Castellan::CacheRows

  control = ->(value) { { "cache-control" => value } }
  expires = ->(seconds, **more) { ->(world) { { "expires" => world.date(seconds), "date" => world.date }.merge(more) } }

  rows "RFC 9111 §4.2.1",
       ["max-age is fresh", control["max-age=60"], :hit],
       ["max-age runs out", control["max-age=60"], :miss, { after: 60 }],
       ["max-age is fresh one second before", control["max-age=60"], :hit, { after: 59 }],
       ["max-age=0 is stale", control["max-age=0"], :miss],
       ["s-maxage comes before max-age", control["max-age=1, s-maxage=60"], :hit],
       ["s-maxage=0 comes before max-age", control["max-age=60, s-maxage=0"], :miss],
       ["max-age comes before Expires", expires[-60, "cache-control" => "max-age=60"], :hit],
       ["max-age=0 comes before Expires", expires[60, "cache-control" => "max-age=0"], :miss],
       ["s-maxage comes before Expires", expires[-60, "cache-control" => "s-maxage=60"], :hit],
       ["Expires is fresh", expires[60], :hit],
       ["Expires runs out", expires[60], :miss, { after: 61 }],
       ["Expires counts from Date", ->(world) { { "expires" => world.date(-50), "date" => world.date(-100) } }, :miss],
       ["Expires without Date counts from now", ->(world) { { "expires" => world.date(60) } }, :hit],
       ["a Cache-Control without freshness leaves Expires", expires[60, "cache-control" => "x=1"], :hit],
       ["the first of two equal directives counts", control["max-age=60, max-age=1"], :hit],
       ["the first of two equal directives counts when it is shorter", control["max-age=1, max-age=60"], :miss],
       ["directives of two lines are one list", { "cache-control" => ["x=1", "max-age=60"] }, :hit],
       ["lines of different encodings are one list", { "cache-control" => ["x=\xFF".b, "é", "max-age=60"] },
        :hit],
       ["MAX-AGE is max-age", control["MAX-AGE=60"], :hit],
       ["Max-Age is max-age", control["x, Max-Age=60"], :hit],
       ["a quoted number is a number", control['max-age="60"'], :hit],
       ["a quoted number that ran out is stale", control['max-age="2"'], :miss],
       ["leading zeros are a number", control["max-age=00060"], :hit],
       ["many leading zeros are a number", control["max-age=#{"0" * 20}60"], :miss, { after: 60 }],
       ["many zeros are 0", control["max-age=#{"0" * 20}"], :miss],
       ["white space around commas is ignored", control[" ,\t max-age=60 ,, x"], :hit],
       ["2^31 - 1 is fresh", control["max-age=2147483647"], :hit],
       ["2^31 is fresh", control["max-age=2147483648"], :hit],
       ["99999999999 is fresh", control["max-age=99999999999"], :hit],
       ["a number of 400 digits is fresh", control["max-age=#{"9" * 400}"], :hit],
       ["an unknown directive is ignored", control["x=\"max-age=0\", max-age=60, foo=bar"], :hit],
       ["max-age in an unknown directive's argument is ignored", control['x="a, max-age=60"'], :miss],
       *["-1", "-60", "60.0", "1e3", "60s", "abc", "", "0x3c", "'60'", "60 60", "6 0", "+60", "\"60", "60;x", "\"-60\""].map { |value|
         ["max-age=#{value} is stale", control["max-age=#{value}"], :miss]
       },
       ["max-age without an argument is stale", control["max-age"], :miss],
       ["a space before the equals sign is stale", control["max-age =60"], :miss],
       ["a space after the equals sign is stale", control["max-age= 60"], :miss],
       ["an invalid s-maxage does not leave max-age", control["s-maxage=x, max-age=60"], :miss],
       ["an invalid max-age does not leave Expires", expires[60, "cache-control" => "max-age=x"], :miss]

  rows "RFC 9111 §5.3",
       *["0", "-1", "", "now", "Thu, 18 Aug 2050 02:01:18", "Thu, 18 Aug 2050 02:01:18 CET", "Thu, 18 Aug 2050 02:01:18 +0000",
         "Thu, 18 Aug 50 02:01:18 GMT", "Thu, 18 Aug 2050 25:01:18 GMT", "Thu, 31 Feb 2050 02:01:18 GMT", "2050-08-18T02:01:18Z",
         "Thu, 18  Aug 2050 02:01:18 GMT", "18 Aug 2050 02:01:18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT",
         "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT"].map { |value|
         ["Expires: #{value} is stale", { "expires" => value }, :miss]
       },
       ["Expires of the IMF format is fresh", { "expires" => "Thu, 18 Aug 2050 02:01:18 GMT" }, :hit],
       ["Expires of the RFC 850 format is fresh", { "expires" => "Thursday, 18-Aug-50 02:01:18 GMT" }, :hit],
       *["thu, 18 aug 2050 02:01:18 gmt", "THURSDAY, 18-AUG-50 02:01:18 GMT",
         "thu aug 18 02:01:18 2050"].map { |value|
         ["case does not count in Expires: #{value}", { "expires" => value }, :hit]
       },
       ["Expires in another zone is stale", { "expires" => "Thu, 18 Aug 2050 02:01:18 UTC" }, :miss],
       ["Expires of the RFC 850 format of the last century is stale", { "expires" => "Sunday, 18-Aug-96 02:01:18 GMT" }, :miss],
       ["Expires of the asctime format is fresh", { "expires" => "Thu Aug 18 02:01:18 2050" }, :hit],
       ["Expires of the asctime format with a one digit day is fresh", { "expires" => "Thu Aug  8 02:01:18 2050" }, :hit],
       ["the first of two Expires counts", { "expires" => ["0", "Thu, 18 Aug 2050 02:01:18 GMT"] }, :miss],
       ["Expires of the year 9999 is fresh", { "expires" => "Fri, 31 Dec 9999 23:59:59 GMT" }, :hit]

  # date, its year for a reader of the 1st of March 2026
  [
    ["Saturday, 29-Feb-76 23:59:59 GMT", 2076], ["Monday, 02-Mar-76 00:00:00 GMT", 1976],
    ["Thursday, 18-Aug-50 02:01:18 GMT", 2050], ["Sunday, 06-Nov-94 08:49:37 GMT", 1994],
    ["Friday, 31-Dec-99 23:59:59 GMT", 1999], ["Saturday, 01-Jan-00 00:00:00 GMT", 2000]
  ].each do |text, year|
    define_method("test_RFC 9110 §5.6.7: #{text} is of #{year}") do
      seconds = Castellan::HTTPCache::HTTPDate.parse(text, now: Time.utc(2026, 3, 1).to_i)
      assert_equal year, Time.at(seconds).utc.year
    end
  end

  modified = lambda do |seconds, **more|
    ->(world) { { "last-modified" => world.date(-seconds), "date" => world.date }.merge(more) }
  end
  rows "RFC 9111 §4.2.2",
       ["a tenth of the time since Last-Modified is fresh", modified[1000], :hit, { after: 99 }],
       ["after a tenth it is validated", modified[1000], :validate, { after: 100 }],
       ["a heuristic lasts a day at most", modified[10_000_000], :hit, { after: 86_399 }],
       ["a heuristic does not last longer than a day", modified[10_000_000], :validate, { after: 86_400 }],
       ["Last-Modified in the future is not fresh", modified[-1000], :validate],
       ["an invalid Last-Modified is nothing", { "last-modified" => "yesterday" }, :miss],
       ["a heuristic never replaces an invalid Expires", modified[1000, "expires" => "0"], :validate],
       ["a heuristic never replaces an invalid max-age", modified[1000, "cache-control" => "max-age=x"], :validate],
       *["public; max-age=0", "public max-age=0", 'public, "max-age=0"'].map { |value|
         ["a heuristic never replaces a malformed freshness: #{value}", modified[1000, "cache-control" => value], :validate]
       },
       ["a heuristic can be switched off", modified[1000], :validate, { cache: { heuristic: false } }],
       ["a heuristic can be shorter", modified[1000], :validate, { cache: { heuristic: 0.01 }, after: 10 }],
       ["Pragma of a response without Cache-Control forbids a heuristic", modified[1000, "pragma" => "no-cache"], :miss]

  rows "RFC 9111 §4.2.3",
       ["Age counts", control["max-age=60"].merge("age" => "58"), :miss],
       ["Age leaves the rest", control["max-age=60"].merge("age" => "50"), :hit,
        { with: ->(test, first, second) { test.assert_equal [50, 53], [first.age, second.age] } }],
       ["a large Age is stale", control["max-age=60"].merge("age" => "99999999999999999"), :miss],
       ["Age beyond max-age is stale at once", control["max-age=60"].merge("age" => "60"), :miss],
       ["the first of several Ages counts", control["max-age=60"].merge("age" => "59, 0"), :miss],
       ["the first of several Ages counts when it is smaller", control["max-age=60"].merge("age" => "0, 90"), :hit],
       ["empty members of Age do not count", control["max-age=60"].merge("age" => ", 59"), :miss],
       ["the first of several lines of Age counts", control["max-age=60"].merge("age" => %w[0 90]), :hit],
       *["-60", "x", "61.5", "\"90\"", "90x"].map { |age|
         ["Age: #{age} is ignored", control["max-age=60"].merge("age" => age), :hit]
       },
       ["an old Date is an age", ->(world) { { "cache-control" => "max-age=60", "date" => world.date(-58) } }, :miss],
       ["the larger of Date's and Age's age counts",
        ->(world) { { "cache-control" => "max-age=60", "date" => world.date(-50), "age" => "10" } }, :hit,
        { with: ->(test, _, second) { test.assert_equal 53, second.age } }],
       ["a Date in the future is no age", ->(world) { { "cache-control" => "max-age=60", "date" => world.date(100) } }, :hit,
        { with: ->(test, _, second) { test.assert_equal 3, second.age } }],
       ["an invalid Date is no age", { "cache-control" => "max-age=60", "date" => "0" }, :hit]

  tagged = ->(value) { { "cache-control" => value, "etag" => '"a"' } }
  rows "RFC 9111 §5.2.2.4",
       ["no-cache is validated", tagged["no-cache, max-age=60"], :validate],
       ["No-Cache is validated", tagged["max-age=60, No-Cache"], :validate],
       ["no-cache alone is validated", tagged["no-cache"], :validate],
       ["no-cache without a validator is asked again", control["no-cache, max-age=60"], :miss],
       ["max-stale does not change no-cache", tagged["no-cache, max-age=60"], :validate, { second: { "Cache-Control" => "max-stale" } }],
       ["no-cache of a field is stored without it", tagged['max-age=60, no-cache="X-A"'].merge("x-a" => "1"), :hit,
        { with: ->(test, _, second) { test.assert_nil second["x-a"] } }],
       ["no-cache of several fields is stored without them", tagged['max-age=60, no-cache="x-a, x-b"'].merge("x-a" => "1", "x-b" => "2"),
        :hit,
        { with: ->(test, _, second) { test.assert_equal [nil, nil], [second["x-a"], second["x-b"]] } }],
       ["no-cache of a field with an unusual name is stored without it", tagged['max-age=60, no-cache="x.a"'].merge("x.a" => "1"), :hit,
        { with: ->(test, _, second) { test.assert_nil second["x.a"] } }],
       ["no-cache with an empty argument is validated", tagged['max-age=60, no-cache=""'], :validate]

  rows "RFC 8246",
       ["immutable is not validated for a reload", tagged["max-age=60, immutable"], :hit, { second: { "Cache-Control" => "max-age=0" } }],
       ["immutable is validated for no-cache", tagged["max-age=60, immutable"], :validate, { second: { "Cache-Control" => "no-cache" } }],
       ["immutable ends with freshness", tagged["max-age=1, immutable"], :validate],
       ["immutable alone is no freshness", control["immutable"], :miss]

  cdn = ->(value, **more) { { "cdn-cache-control" => value }.merge(more) }
  rows "RFC 9213 §2.2",
       ["CDN-Cache-Control is fresh", cdn["max-age=60"], :hit],
       ["it comes before max-age", cdn["max-age=60", "cache-control" => "max-age=0"], :hit],
       ["it comes before s-maxage", cdn["max-age=1", "cache-control" => "s-maxage=60"], :miss],
       ["it comes before no-store", cdn["max-age=60", "cache-control" => "no-store"], :hit],
       ["it comes before private", cdn["max-age=60", "cache-control" => "private"], :hit],
       ["it comes before Expires", cdn["max-age=60", "expires" => "0"], :hit],
       ["Expires does not add to it", ->(world) { cdn["must-revalidate", "expires" => world.date(60)] }, :miss],
       ["its no-store comes before max-age", cdn["no-store", "cache-control" => "max-age=60"], :miss],
       ["its private comes before max-age", cdn["private", "cache-control" => "max-age=60"], :miss],
       ["its no-cache comes before max-age", cdn["no-cache, max-age=60", "cache-control" => "max-age=60", "etag" => '"a"'], :validate],
       ["its max-age=0 is stale", cdn["max-age=0", "cache-control" => "max-age=60"], :miss],
       ["a later member replaces an earlier one", cdn["max-age=0, max-age=60"], :hit],
       ["parameters are ignored", cdn["max-age=60;x=1;y, foo"], :hit],
       ["a false member is absent", cdn["max-age=60, no-store=?0"], :hit],
       ["unknown members of any type are ignored", cdn['max-age=60, a=1.5, b=:YQ==:, c=("x" y);z, d=*t/1, e=?1, f=@1, g="q\\""'], :hit],
       ["several lines are one dictionary", cdn[["a", "max-age=60"]], :hit],
       ["lines of different encodings are invalid",
        cdn[["x=\xFF".b, "é"], "cache-control" => "max-age=60"], :hit],
       *["", "max-age=60,", "Max-Age=60", "max-age=60;", ", max-age=60", "max-age= 60", "max-age=6 0", "max-age=\"60", "a=(1",
         "é=1, max-age=60", "max-age=1234567890123456", 'max-age=0, a=%"%ff"'].map { |value|
         ["an invalid value is ignored: #{value}", cdn[value, "cache-control" => "max-age=60"], :hit]
       },
       *["max-age=60,", "MAX-AGE=60", "max-age"].map { |value|
         ["an invalid value is no freshness: #{value}", cdn[value], :miss]
       },
       *["max-age=\"60\"", "max-age=60.0", "max-age=-60", "max-age=abc", "max-age=(60)", "max-age=?1", "max-age=@60"].map { |value|
         ["a value of another type is not coerced: #{value}", cdn[value, "cache-control" => "max-age=60"], :miss]
       },
       ["a display string is ignored", cdn['max-age=60, a=%"%c3%a4 x"', "cache-control" => "no-store"], :hit],
       *["no-cache=x-a", "no-cache=5", "no-cache=(\"x-a\")"].map { |value|
         ["names that are no String are no-cache of all: #{value}", cdn["max-age=60, #{value}", "etag" => '"a"'], :validate]
       },
       ["names in a String are those of fields", cdn['max-age=60, no-cache="x-a"', "etag" => '"a"'], :hit],
       ["another field of the list comes first", cdn["max-age=0", "example-cache-control" => "max-age=60"], :hit,
        { cache: { targeted: %w[Example-Cache-Control CDN-Cache-Control] } }],
       ["an invalid first field leaves the second", cdn["max-age=60", "example-cache-control" => "!"], :hit,
        { cache: { targeted: %w[Example-Cache-Control CDN-Cache-Control] } }],
       ["Surrogate-Control is not a targeted field", { "surrogate-control" => "max-age=60" }, :miss],
       ["Surrogate-Control does not replace Cache-Control", { "surrogate-control" => "max-age=0", "cache-control" => "max-age=60" }, :hit]

  def test_the_delay_of_the_response_is_part_of_its_age
    world = Castellan::CachedApplication.new
    world.answer do
      world.later(7)
      [200, { "cache-control" => "max-age=10", "age" => "2" }, ["x"]]
    end
    assert_nil world.get.note[/hit/]
    assert_equal 9, world.get.age
    world.later(1)
    refute_predicate world.get, :hit?
  end

  def test_a_clock_that_goes_back_makes_nothing_younger
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=10", "age" => "5" }, ["x"]] }
    world.get
    world.later(-3_600)
    assert_equal 5, world.get.age
  end
end
