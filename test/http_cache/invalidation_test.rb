# frozen_string_literal: true

require "test_helper"
require "support/cache_rows"
require "cache/broken_store"

# RFC 9111 §4.4: invalidation by unsafe methods; RFC 9875: cache groups; purges.
class HTTPCacheInvalidationTest < Minitest::Test
  # method, status of its response, whether the stored response is gone
  [
    *%w[POST PUT DELETE PATCH FOO MKCOL].flat_map do |name|
      [200, 204, 303, 404, 500].map { |status| [name, status, status < 400] }
    end,
    *%w[OPTIONS PROPFIND REPORT SEARCH QUERY].map { |name| [name, 200, false] },
    ["HEAD", 200, false]
  ].each do |name, status, gone|
    define_method("test_RFC 9111 §4.4: #{name} with #{status} #{gone ? "invalidates" : "leaves"} its target") do
      world = world_with("/a?b=1", "/a")
      world.answer { [status, {}, []] }
      world.call(name, "/a?b=1")
      assert_equal [!gone, true], [hit?(world, "/a?b=1"), hit?(world, "/a")]
    end
  end

  # field, value, whether /b is gone
  [
    ["location", "/b", true], ["content-location", "/b", true], ["location", "b", true], ["location", "../b", true],
    ["location", "http://example.org/b", true], ["location", "HTTP://EXAMPLE.ORG:80/b", true], ["location", "//example.org/b", true],
    ["location", "/b#part", true], ["content-location", "http://example.com/b", false], ["location", "http://example.org:8080/b", false],
    ["location", "https://example.org/b", false], ["location", "//example.com/b", false], ["location", "http://example.org.evil/b", false],
    ["location", "/b ", true], ["location", "/./b", true],
    ["location", "http://[broken", false], ["location", "", false], ["location", "/c", false]
  ].each do |field, value, gone|
    define_method("test_RFC 9111 §4.4: #{field}: #{value} #{gone ? "invalidates" : "leaves"} /b") do
      world = world_with("/a", "/b")
      world.answer { [201, { field => value }, []] }
      world.post("/a")
      assert_equal [false, !gone], [hit?(world, "/a"), hit?(world, "/b")]
    end
  end

  def test_location_counts_whatever_the_path_of_the_target_contains
    ["/a|b", "/a^", "/a%zz", "/a?f[x]={1}"].product(%w[/b http://example.org/b]).each do |path, location|
      world = world_with("/b")
      world.answer { [201, { "location" => location }, []] }
      env = { "PATH_INFO" => path[/[^?]+/], "QUERY_STRING" => path[/\?(.*)/, 1].to_s }
      world.post("/", {}, env: env)
      refute hit?(world, "/b"), path
    end
  end

  def test_location_of_a_failure_invalidates_nothing
    world = world_with("/a", "/b")
    world.answer { [400, { "location" => "/b" }, []] }
    world.post("/a")
    assert_equal [true, true], [hit?(world, "/a"), hit?(world, "/b")]
  end

  def test_location_of_another_origin_is_left_for_its_own
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }, ["x"]] }
    world.get("/b", {}, env: { "HTTP_HOST" => "victim.org" })
    world.answer { [201, { "location" => "http://victim.org/b", "content-location" => "//victim.org/b" }, []] }
    world.post("/a")
    assert_predicate world.get("/b", {}, env: { "HTTP_HOST" => "victim.org" }), :hit?
  end

  def test_a_response_that_was_requested_before_the_invalidation_is_not_stored_after_it
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }, ["old"]] }
    world.answer do |env|
      world.post("/a") if env["REQUEST_METHOD"] == "GET"
      [200, { "cache-control" => "max-age=60" }, ["old"]]
    end
    assert_equal "Castellan; fwd=uri-miss", world.get("/a").note
    world.answer { [200, { "cache-control" => "max-age=60" }, ["new"]] }
    assert_equal "new", world.get("/a").body
  end

  # The old response arrives when a new one is stored already. Vary of the old and of the new one.
  [[nil, nil], %w[foo foo], [nil, "foo"], ["foo", nil]].each do |before, after|
    define_method("test_a_late_response_does_not_replace_one_after_the_invalidation, #{before} #{after}") do
      nested = false
      world = Castellan::CachedApplication.new do |env|
        late = env["REQUEST_METHOD"] == "GET" && !nested
        if late
          nested = true
          world.post("/a")
          assert_equal "new", world.get("/a").body
        end
        vary = late ? before : after
        [200, { "cache-control" => "max-age=60", "vary" => vary }.compact, [late ? "old" : "new"]]
      end
      assert_equal ["old", "Castellan; fwd=uri-miss"], [(first = world.get("/a")).body, first.note]
      assert_equal ["new", true], [(answered = world.get("/a")).body, answered.hit?]
    end
  end

  def test_a_late_response_that_is_not_stored_deletes_nothing_newer
    world = world_with("/a")
    nested = false
    world.answer do |env|
      late = env["REQUEST_METHOD"] == "GET" && !nested
      if late
        nested = true
        world.post("/a")
        world.get("/a")
      end
      late ? [404, {}, ["old"]] : [200, { "cache-control" => "max-age=60" }, ["new"]]
    end
    assert_equal "old", world.get("/a", { "Cache-Control" => "no-cache" }).body
    assert_equal ["new", true], [(answered = world.get("/a")).body, answered.hit?]
  end

  # Cache-Groups of /a and of /b, Cache-Group-Invalidation, whether both are gone
  [
    ['"one"', '"two"', '"one"', [true, false]],
    ['"one"', '"one", "two"', '"one"', [true, true]],
    ['"one";x=1', '"two"', '"two", "one"', [true, true]],
    ['"one"', '"ONE"', '"one"', [true, false]],
    ['"one"', '"two"', "one", [false, false]],
    ['"one"', '"two"', '"one",', [false, false]],
    ["one", '"two"', '"one"', [false, false]],
    ['"one two"', '"one"', '"one two"', [true, false]],
    [(1..32).map { |number| "\"group-#{number}-#{"x" * 24}\"" }.join(", "), '"two"', "\"group-32-#{"x" * 24}\"", [true, false]]
  ].each do |of_a, of_b, invalidation, gone|
    define_method("test_RFC 9875 §3: #{invalidation} of #{of_a[0, 40]} and #{of_b} is #{gone.inspect}") do
      world = grouped_world("/a" => of_a, "/b" => of_b)
      world.answer { [400, { "cache-group-invalidation" => invalidation }, []] }
      world.post("/elsewhere")
      assert_equal gone, ["/a", "/b"].map { |path| !hit?(world, path) }
    end
  end

  def test_groups_are_ignored_in_responses_to_safe_methods
    world = grouped_world("/a" => '"one"')
    world.answer { [200, { "cache-group-invalidation" => '"one"' }, []] }
    %w[GET OPTIONS].each { |name| world.call(name, "/elsewhere") }
    assert hit?(world, "/a")
  end

  def test_groups_of_another_origin_are_not_invalidated
    world = grouped_world("/a" => '"one"')
    world.answer { [200, { "cache-group-invalidation" => '"one"' }, []] }
    world.post("/elsewhere", {}, env: { "HTTP_HOST" => "evil.org" })
    assert hit?(world, "/a")
  end

  def test_an_invalidated_response_takes_its_group_along_and_no_further
    world = grouped_world("/a" => '"one"', "/b" => '"one", "two"', "/c" => '"two"')
    world.answer { [200, {}, []] }
    world.post("/a")
    assert_equal([true, true, false], ["/a", "/b", "/c"].map { |path| !hit?(world, path) })
  end

  def test_purge_deletes_all_variants_of_one_url
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "vary" => "accept" }, ["x"]] }
    ask = ->(path, accept, **env) { world.get(path, { "Accept" => accept }, env: env) }
    [["/a?b=1", "x"], ["/a?b=1", "y"], ["/a", "x"]].each { |path, accept| ask[path, accept] }
    ask["/a?b=1", "x", "HTTP_X_REWRITE_URL" => "/other"]
    Castellan::HTTPCache.purge("HTTP://Example.org:80/a?b=1#part")
    assert_equal([false, false, true], [["/a?b=1", "x"], ["/a?b=1", "y"], ["/a", "x"]].map { |path, accept| ask[path, accept].hit? })
    refute_predicate ask["/a?b=1", "x", "HTTP_X_REWRITE_URL" => "/other"], :hit?
  end

  # RFC 9110 §4.2.3: with and without the default port it is one URI.
  [
    { "HTTP_HOST" => "example.org:80" }, { "HTTP_HOST" => "example.org:" },
    { "HTTP_HOST" => "app:3000", "HTTP_X_FORWARDED_HOST" => "example.org:80" }
  ].each do |fields|
    define_method("test_RFC 9111 §4.4: a change and a purge reach #{fields.values.join(" as ")}") do
      world = world_with("/a")
      read = -> { world.get("/a", {}, env: fields) }
      [-> { world.post("/a") }, -> { world.cache.purge("http://example.org/a") }].each do |change|
        2.times { read.call }
        assert_predicate read.call, :hit?
        change.call
        refute_predicate read.call, :hit?
      end
    end
  end

  def test_purge_takes_the_store_of_another_process
    store = Castellan::Store::MemoryStore.new
    world = Castellan::CachedApplication.new(store: store) { [200, { "cache-control" => "max-age=60" }, ["x"]] }
    world.get("/a")
    Castellan::HTTPCache.purge("http://example.org/a", store: store)
    refute_predicate world.get("/a"), :hit?
  end

  def test_a_purge_by_another_process_between_the_last_check_of_an_entry_and_its_write
    [{}, { "vary" => "accept" }].product([true, false]).each do |fields, leases|
      Dir.mktmpdir do |directory|
        store = Castellan::Store::DirectoryStore.new(directory)
        store.define_singleton_method(:supports?) { |_feature| leases } # false: such as Solid Cache
        purges = [-> { Castellan::HTTPCache.purge("http://example.org/a", store: store) }]
        store.define_singleton_method(:write_multi) do |entries, **options|
          purges.shift&.call if entries.values.any? { |bytes| bytes.start_with?(Castellan::HTTPCache::StoredResponse::MAGIC) }
          super(entries, **options)
        end
        world = Castellan::CachedApplication.new(store: store) { [200, { "cache-control" => "max-age=60", **fields }, ["x"]] }
        assert_equal([false, false, true], Array.new(3) { world.get("/a").hit? }, fields.inspect)
        assert_empty purges
      end
    end
  end

  def test_purge_refuses_a_path
    Castellan::HTTPCache.new(->(_env) { [200, {}, []] })
    error = assert_raises(Castellan::ConfigurationError) { Castellan::HTTPCache.purge("/a") }
    assert_includes error.message, "https://example.com/posts"
  end

  def test_purge_without_a_url_or_a_tag_raises_with_an_example
    cache = Castellan::HTTPCache.new(->(_env) { [200, {}, []] })
    url = "write for example HTTPCache.purge(\"https://example.com/posts\")"
    tags = "write for example HTTPCache.purge_tags(\"post-1\")"
    [Castellan::HTTPCache, cache].each do |target|
      { -> { target.purge(nil) } => "got nil; #{url}", -> { target.purge(7) } => "got 7; #{url}",
        -> { target.purge_tags(nil) } => "got [nil]; #{tags}", -> { target.purge_tags("a", "") } => "got [\"a\", \"\"]; #{tags}" }
        .each { |call, message| assert_includes assert_raises(Castellan::ConfigurationError, &call).message, message }
    end
  end

  { "surrogate-key" => "posts post-1", "xkey" => "posts, post-1", "cache-tag" => "posts,post-1" }.each do |field, value|
    define_method("test_purge_tags deletes responses with #{field}") do
      world = Castellan::CachedApplication.new { |env| [200, { "cache-control" => "max-age=60", field => env["PATH_INFO"] == "/a" ? value : "other" }, ["x"]] }
      %w[/a /b].each { |path| world.get(path) }
      assert_equal([true, true], %w[/a /b].map { |path| hit?(world, path) })
      world.later(1)
      world.cache.purge_tags("post-1")
      assert_equal([false, true], %w[/a /b].map { |path| hit?(world, path) })
      world.later(1)
      world.get("/a")
      assert hit?(world, "/a")
    end
  end

  def test_a_tag_that_was_evicted_makes_its_responses_misses
    store = Castellan::Store::MemoryStore.new
    world = Castellan::CachedApplication.new(store: store) { [200, { "cache-control" => "max-age=60", "xkey" => "a" }, ["x"]] }
    world.get
    store.delete_multi([Castellan::HTTPCache::Storage.tag_key("a")])
    refute hit?(world, "/")
  end

  def test_a_response_with_more_than_256_tags_is_not_stored
    { 256 => true, 257 => false }.each do |count, stored|
      world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "xkey" => [*1..count].join(" ") }, ["x"]] }
      world.get("/a")
      assert_equal stored, hit?(world, "/a"), count
    end
  end

  def test_a_response_that_was_requested_before_its_tag_was_purged_is_not_stored
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60", "xkey" => "a" }, ["old"]] }
    world.get("/other")
    world.answer do
      world.later(1)
      world.cache.purge_tags("a")
      [200, { "cache-control" => "max-age=60", "xkey" => "a" }, ["old"]]
    end
    assert_equal "Castellan; fwd=uri-miss", world.get("/a").note
  end

  def run
    @ahead = 0
    real = Castellan::Clock.method(:monotonic_ns).unbind.bind(Castellan::Clock)
    Castellan::Clock.stub(:monotonic_ns, -> { real.call + @ahead }) { super }
  end

  # What changes /a, and what it returns while the store fails.
  LOST = {
    "a POST" => ->(world) { world.post("/a").status },
    "purge" => ->(world) { world.cache.purge("http://example.org/a") },
    "HTTPCache.purge" => ->(_) { Castellan::HTTPCache.purge("http://example.org/a") },
    "purge_tags" => ->(world) { world.cache.purge_tags("/a") },
    "HTTPCache.purge_tags" => ->(_) { Castellan::HTTPCache.purge_tags("/a") }
  }.freeze

  LOST.each do |name, change|
    define_method("test_#{name} while the store fails invalidates when the store works again") do
      world, store = tagged_world("/a", "/b")
      store.broken = true
      assert_equal name == "a POST" ? 200 : false, change.call(world)
      assert_equal "Castellan; fwd=uri-miss", world.get("/a").note
      mend(store)
      assert_equal([false, true], %w[/a /b].map { |path| world.get(path).hit? })
      2.times { world.later(1) && world.get("/a") }
      assert_predicate world.get("/a"), :hit?
    end
  end

  # A server without memory, or a replica: it reads and refuses to write.
  def test_a_store_that_does_not_write_answers_with_nothing_that_was_invalidated
    world, store = tagged_world("/a", "/b", "/c")
    store.define_singleton_method(:write_multi) { |*, **| raise Castellan::StoreError, "OOM" }
    world.post("/a")
    world.cache.purge_tags("/b")
    hits = []
    eventually do # FailSafe skips the store for a moment after each failure
      hits << %w[/a /b /c].map { |path| world.get(path).hit? }
      hits.include?([false, false, true])
    end
    assert_empty hits - [[false, false, true], [false] * 3]
  end

  def test_a_response_that_was_requested_before_a_lost_invalidation_is_not_stored_after_it
    world, store = tagged_world("/b")
    world.answer do |env|
      if env["REQUEST_METHOD"] == "GET" && env["PATH_INFO"] == "/a"
        store.broken = true
        world.post("/a")
        mend(store)
        world.get("/b")
      end
      [200, { "cache-control" => "max-age=60" }, ["old"]]
    end
    assert_equal "Castellan; fwd=uri-miss", world.get("/a").note
    refute hit?(world, "/a")
  end

  def test_another_process_sees_a_lost_invalidation_after_the_next_read_of_this_one
    world, store = tagged_world("/a", "/b")
    other = Castellan::CachedApplication.new(store: store) { [200, {}, ["new"]] }
    store.broken = true
    world.post("/a")
    mend(store)
    assert_predicate other.get("/a"), :hit?
    world.get("/b")
    refute_predicate other.get("/a"), :hit?
  end

  def test_too_many_lost_invalidations_make_all_older_responses_invalid
    most = Castellan::HTTPCache::LostInvalidations::MOST
    world, store = tagged_world("/last", "/other")
    store.broken = true
    (1..most).each { |number| world.post("/#{number}") }
    mend(store)
    assert_predicate world.get("/last"), :hit?
    store.broken = true
    (1..most).each { |number| world.post("/#{number}") }
    world.post("/last")
    mend(store)
    world.later(1)
    2.times { |time| assert_equal([time == 1] * 2, %w[/last /other].map { |path| world.get(path).hit? }) }
  end

  def test_a_thousand_lost_urls_of_a_store_that_processes_share_invalidate_no_other_response
    world, store = tagged_world("/other", store: SimpleDelegator.new(BrokenStore.new)) # no MemoryStore
    store.broken = true
    (1..1_000).each { |number| world.cache.purge("http://example.org/#{number}") }
    mend(store)
    assert_predicate world.get("/other"), :hit?
  end

  def test_a_purged_url_may_have_letters_that_clients_encode
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }, ["é"]] }
    2.times { world.get("/caf%C3%A9") }
    world.cache.purge("http://example.org/café")
    refute_predicate world.get("/caf%C3%A9"), :hit?
  end

  private

  # Works again, and lets the time pass for which it is not asked after a failure, at most five seconds.
  def mend(store)
    store.broken = false
    @ahead += 6_000_000_000
  end

  # @return [Array] an application whose responses have their path as a tag, and its store
  def tagged_world(*paths, store: BrokenStore.new)
    world = Castellan::CachedApplication.new(store: store, log: ->(_line) {}) do |env|
      [200, { "cache-control" => "max-age=60", "xkey" => env["PATH_INFO"] }, ["x"]]
    end
    paths.each { |path| world.get(path) }
    world.later(1)
    [world, store]
  end

  def world_with(*paths)
    world = Castellan::CachedApplication.new { [200, { "cache-control" => "max-age=60" }, ["x"]] }
    paths.each { |path| world.get(path) }
    world
  end

  def grouped_world(groups)
    world = Castellan::CachedApplication.new { |env| [200, { "cache-control" => "max-age=60", "cache-groups" => groups.fetch(env["PATH_INFO"]) }, ["x"]] }
    groups.each_key { |path| world.get(path) }
    assert(groups.keys.all? { |path| hit?(world, path) })
    world.later(1)
    world
  end

  def hit?(world, path)
    world.get(path, { "Cache-Control" => "only-if-cached" }).status != 504
  end
end
