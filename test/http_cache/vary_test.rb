# frozen_string_literal: true

require "test_helper"
require "support/cache_rows"
require "cache/broken_store"

# RFC 9111 §4.1: stored responses that vary.
class HTTPCacheVaryTest < Minitest::Test
  extend Castellan::CacheRows

  vary = ->(value) { { "cache-control" => "max-age=60", "vary" => value } }
  both = ->(first, second) { { request: first, second: second } }
  foo = ->(first, second) { both[{ "Foo" => first }, { "Foo" => second }] }

  rows "RFC 9111 §4.1",
       ["an equal field matches", vary["Foo"], :hit, foo["1", "1"]],
       ["another field does not match", vary["Foo"], :miss, foo["1", "2"]],
       ["the name is case-insensitive", vary["fOO"], :hit, foo["1", "1"]],
       ["a value is case-sensitive", vary["Foo"], :miss, foo["a", "A"]],
       ["a field that is absent matches an absent one", vary["Foo"], :hit],
       ["an absent field does not match a present one", vary["Foo"], :miss, both[{}, { "Foo" => "1" }]],
       ["a present field does not match an absent one", vary["Foo"], :miss, both[{ "Foo" => "1" }, {}]],
       ["an absent field does not match an empty one", vary["Foo"], :miss, both[{}, { "Foo" => "" }]],
       ["other fields do not count", vary["Foo"], :hit, both[{ "Foo" => "1", "Bar" => "1" }, { "Foo" => "1", "Bar" => "2" }]],
       ["a star never matches", vary["*"], :miss],
       ["a star in a list never matches", vary["Foo, *"], :miss, foo["1", "1"]],
       ["a star in another line never matches", vary[["Foo", "*"]], :miss, foo["1", "1"]],
       ["two names match", vary["Foo, Bar"], :hit, both[{ "Foo" => "1", "Bar" => "2" }, { "Foo" => "1", "Bar" => "2" }]],
       ["two names match in another order of fields", vary["Bar,Foo"], :hit,
        both[{ "Foo" => "1", "Bar" => "2" }, { "Bar" => "2", "Foo" => "1" }]],
       ["the second name does not match", vary["Foo, Bar"], :miss, both[{ "Foo" => "1", "Bar" => "2" }, { "Foo" => "1", "Bar" => "1" }]],
       ["names of two lines match", vary[%w[Foo Bar]], :hit, both[{ "Foo" => "1", "Bar" => "2" }, { "Foo" => "1", "Bar" => "2" }]],
       ["a name of the second line does not match", vary[%w[Foo Bar]], :miss, both[{ "Bar" => "2" }, { "Bar" => "1" }]],
       ["values do not move between names", vary["Foo, Bar"], :miss, both[{ "Foo" => "1" }, { "Bar" => "1" }]],
       ["white space around commas is nothing", vary["Foo"], :hit, foo["1, 2", "1,2"]],
       ["white space around commas of the second is nothing", vary["Foo"], :hit, foo["1,2", " 1 ,\t2 "]],
       ["order counts where nothing is known", vary["Foo"], :miss, foo["1, 2", "2, 1"]],
       ["white space in a quoted string counts", vary["Foo"], :miss, foo['"1, 2"', '"1,2"']],
       ["white space within a value counts", vary["Foo"], :miss, foo["a b", "ab"]],
       ["white space counts where there are more than tokens", vary["Foo"], :miss, foo["http://a/?q=1 ,2", "http://a/?q=1,2"]],
       ["white space in what a user has typed counts", vary["HX-Prompt"], :miss, both[{ "HX-Prompt" => "a, b" }, { "HX-Prompt" => "a,b" }]],
       ["white space in brackets counts", vary["Foo"], :miss, foo["[a, b]", "[a,b]"]],
       ["white space within a coding counts", vary["Accept-Encoding"], :miss,
        both[{ "Accept-Encoding" => "gz ip" }, { "Accept-Encoding" => "gzip" }]],
       ["white space before a weight is nothing", vary["Accept-Encoding"], :hit,
        both[{ "Accept-Encoding" => "gzip; q=0.5" }, { "Accept-Encoding" => "gzip ;q=0.5" }]],
       *%w[Accept Accept-Language Accept-Charset].map { |name|
         ["white space before a weight in #{name} is nothing", vary[name], :hit, both[{ name => "a; q=0.5, b" }, { name => "a ;q=0.5,b" }]]
       },
       ["white space around a semicolon counts elsewhere", vary["Foo"], :miss, foo["a; b", "a;b"]],
       *['max-age=60, no-cache="vary"', 'max-age=60, private="vary"'].map { |control|
         ["not stored if Vary is not: #{control}", { "cache-control" => control, "vary" => "Foo", "etag" => '"a"' }, :miss, foo["1", "1"]]
       },
       ["not stored if Vary is only for the connection",
        { "cache-control" => "max-age=60", "vary" => "Foo", "connection" => "close, Vary" }, :miss, foo["1", "1"]],
       *["Accept;Cookie", '"Cookie"', "Accept; q=1"].map { |value|
         ["Vary with a name that no field has matches nothing: #{value}", vary[value], :miss, foo["1", "1"]]
       },
       ["Accept-Encoding in another order matches", vary["Accept-Encoding"], :hit,
        both[{ "Accept-Encoding" => "gzip, br" }, { "Accept-Encoding" => "BR,gzip" }]],
       ["Accept-Encoding with another weight does not match", vary["Accept-Encoding"], :miss,
        both[{ "Accept-Encoding" => "gzip, br;q=0.5" }, { "Accept-Encoding" => "gzip, br" }]],
       ["Accept-Language ignores case", vary["Accept-Language"], :hit,
        both[{ "Accept-Language" => "de-AT, en" }, { "Accept-Language" => "DE-at,en" }]],
       ["Accept-Language in another order does not match", vary["Accept-Language"], :miss,
        both[{ "Accept-Language" => "de, en" }, { "Accept-Language" => "en, de" }]],
       ["cookies are compared exactly", vary["Cookie"], :miss, both[{ "Cookie" => "a=1, 2" }, { "Cookie" => "a=1,2" }]],
       *[{}, { "vary" => "Foo" }].map { |fields|
         ["vary: counts beside Vary: #{fields["vary"]}", { "cache-control" => "max-age=60", **fields }, :miss,
          { request: { "Accept" => "a" }, second: { "Accept" => "b" }, cache: { vary: %w[Accept X-Other] } }]
       },
       ["vary: leaves the names of Vary", vary["Foo"], :miss, { cache: { vary: "Bar" }, **foo["1", "2"] }],
       ["equal fields of vary: match", { "cache-control" => "max-age=60" }, :hit,
        { cache: { vary: "Accept" }, **both[{ "Accept" => "a, b" }, { "Accept" => "a,b" }] }],
       ["more than 32 names match nothing", vary[(1..33).map { |number| "x#{number}" }.join(",")], :miss]

  def test_variants_are_stored_side_by_side
    world = Castellan::CachedApplication.new { |env| [200, { "cache-control" => "max-age=60", "vary" => "foo" }, [env["HTTP_FOO"].to_s]] }
    values = ["a", "b", nil, "c"]
    ask = ->(value) { world.get("/", value ? { "Foo" => value } : {}) }
    values.each { |value|
      assert_equal value.to_s, ask[value].body
      assert_equal [value.to_s, true], [(answered = ask[value]).body, answered.hit?]
    }
    assert_equal [values.size, "Castellan; fwd=vary-miss; stored"], [world.requests.size, ask["d"].note]
  end

  def test_a_hit_is_one_read_of_the_store
    store = BrokenStore.new
    world = Castellan::CachedApplication.new(store: store) do |env|
      [200, { "cache-control" => "max-age=60", "vary" => "foo" }, [env["HTTP_FOO"].to_s]]
    end
    %w[a b].each { |value| world.get("/", { "Foo" => value }) }
    before = store.reads
    assert_equal(%w[a b], %w[a b].map { |value| world.get("/", { "Foo" => value }).body })
    assert_equal [2, 2], [store.reads - before, world.requests.size]
    world.post
    assert_equal([false, true], Array.new(2) { world.get("/", { "Foo" => "a" }).hit? })
  end

  def test_of_several_matching_responses_the_newest_is_used
    vary = "foo"
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "vary" => vary }, ["by #{vary}"]] }
    world.get("/", { "Foo" => "1", "Bar" => "1" })
    world.later(5)
    vary = "foo, bar"
    world.get("/", { "Foo" => "2", "Bar" => "1" })
    world.get("/", { "Foo" => "1", "Bar" => "1", "Cache-Control" => "no-cache" })
    assert_equal ["by foo, bar", true], [(answered = world.get("/", { "Foo" => "1", "Bar" => "1" })).body, answered.hit?]
  end

  def test_a_response_without_vary_stays_with_the_first_that_has_it
    world = Castellan::CachedApplication.new do |env|
      [200, { "cache-control" => "max-age=60", **(env["HTTP_FOO"] ? { "vary" => "foo" } : {}) }, [env["HTTP_FOO"] || "none"]]
    end
    world.get
    world.later(2)
    assert_equal "1", world.get("/", { "Foo" => "1", "Cache-Control" => "no-cache" }).body
    assert_equal %w[none 1], [world.get.body, world.get("/", { "Foo" => "1" }).body]
    assert_equal 2, world.requests.size
  end

  def test_a_newer_default_response_without_vary_does_not_hide_the_one_that_matches
    world = Castellan::CachedApplication.new do |env|
      vary = env["HTTP_FOO"] ? { "vary" => "foo" } : {}
      [200, { "cache-control" => "max-age=60", **vary }, [env["HTTP_FOO"] || "none"]]
    end
    world.get("/", { "Foo" => "1" })
    world.later(2)
    assert_equal %w[none 1 none], [world.get.body, world.get("/", { "Foo" => "1" }).body, world.get.body]
    assert_equal 2, world.requests.size
  end

  def test_a_response_that_has_lost_its_vary_replaces_the_one_that_had_it
    fields = { "cache-control" => "max-age=5", "vary" => "foo" }
    world = Castellan::CachedApplication.new { [200, fields.dup, ["x"]] }
    world.get("/", { "Foo" => "1" })
    world.later(10)
    fields = { "cache-control" => "max-age=60" }
    assert_equal [false, true], Array.new(2) { world.get("/", { "Foo" => "1" }).hit? }
  end

  def test_the_variant_that_was_selected_is_validated
    world = Castellan::CachedApplication.new { |env| [200, { "cache-control" => "max-age=5", "vary" => "foo", "etag" => "\"#{env["HTTP_FOO"]}\"" }, [env["HTTP_FOO"]]] }
    %w[a b].each { |value| world.get("/", { "Foo" => value }) }
    world.later(10)
    world.answer { |env| [304, { "etag" => env["HTTP_IF_NONE_MATCH"], "cache-control" => "max-age=60" }, []] }
    assert_equal ["a", '"a"'], [world.get("/", { "Foo" => "a" }).body, world.requests.last["HTTP_IF_NONE_MATCH"]]
    assert_equal [true, false], [world.get("/", { "Foo" => "a" }).hit?, world.get("/", { "Foo" => "b" }).hit?]
  end

  def test_an_invalidated_uri_loses_all_variants
    world = Castellan::CachedApplication.new { |env| [200, { "cache-control" => "max-age=60", "vary" => "foo" }, [env["HTTP_FOO"].to_s]] }
    %w[a b].each { |value| world.get("/", { "Foo" => value }) }
    world.post
    world.get("/", { "Foo" => "a" })
    assert_equal "Castellan; fwd=vary-miss; stored", world.get("/", { "Foo" => "b" }).note
  end

  # A long value is compared as it is: sorting and weighing thousands of members would be an attack (CVE-2024-26146).
  def test_quadratic_accept_encoding_as_in_cve_2024_26146_is_neutral
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "vary" => "accept-encoding" }, ["x"]] }
    long = "gzip;q=0.5, " * 5_000
    world.get("/", { "Accept-Encoding" => long })
    assert_predicate world.get("/", { "Accept-Encoding" => long }), :hit?
    assert_operator allocated_objects { world.get("/", { "Accept-Encoding" => long }) }, :<, 2_000
  end
end
