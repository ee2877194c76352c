# frozen_string_literal: true

require "test_helper"
require "castellan/profile"

class ProfileResultsTest < Minitest::Test
  Profile = Castellan::Profile

  def setup
    super
    @said = []
    @results = Profile::Results.new(Castellan::Store::MemoryStore.new(max_bytesize: 80_000), log: ->(text) { @said << text })
  end

  def add(id, **members) = @results.add(Profile::Result.new(id: id, **members))

  def test_a_result_is_found_again
    assert add("one", path: "/users", notes: ["one"])
    assert_equal ["/users", ["one"]], @results.find("one").then { |found| [found.path, found.notes] }
    assert_nil @results.find("two")
  end

  def test_an_id_from_outside_cannot_name_anything_else
    add("one")
    [nil, "", "count", "#1", "../one", "x" * 65, "a\n"].each { |id| assert_nil @results.find(id) }
  end

  def test_the_newest_are_listed_first_and_by_endpoint_and_status
    add("a", endpoint: "GET /users", status: 200)
    add("b", endpoint: "GET /posts", status: 404)
    add("c", endpoint: "GET /users", status: 500)
    assert_equal %w[c b a], @results.latest.map(&:id)
    assert_equal %w[c], @results.latest(limit: 1).map(&:id)
    assert_equal %w[c a], @results.latest(endpoint: "GET /users").map(&:id)
    assert_equal %w[b], @results.latest(status: "404").map(&:id)
    assert_equal %w[b], @results.latest(status: "4xx").map(&:id)
    assert_equal ["GET /posts", "GET /users"], @results.endpoints
  end

  def test_results_since_a_number_are_listed
    add("a")
    number = @results.latest.first.number
    assert_empty @results.latest(after: number)
    add("b")
    assert_equal %w[b], @results.latest(after: number).map(&:id)
  end

  def test_evicted_results_are_not_listed
    40.times { |number| assert add("r#{number}", path: SecureRandom.hex(2_500)) }
    listed = @results.latest.map(&:id)
    assert_equal "r39", listed.first
    assert_operator listed.size, :<, 20
    listed.first(5).each { |id| assert @results.find(id) }
  end

  def test_a_result_that_is_too_large_is_logged_and_not_stored
    refute add("a", endpoint: "GET /users", path: SecureRandom.hex(50_000))
    assert_empty @results.latest
    assert_includes @said.first, "a profile of GET /users was too large"
  end

  def test_a_store_of_another_machine_is_as_good
    needs :redis
    store = Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, timeout: 5, namespace: "profiles-#{rand(1 << 60)}:")
    @results = Profile::Results.new(store, ttl: 60)
    add("one", endpoint: "GET /users", path: "/\u00fc")
    add("two", endpoint: "GET /posts")
    other = Profile::Results.new(store)
    assert_equal %w[two one], other.latest.map(&:id)
    assert_equal "/\u00fc", other.find("one").path
  end

  def test_invalid_entries_are_ignored
    store = Castellan::Store::MemoryStore.new
    @results = Profile::Results.new(store)
    4.times { |number| add("r#{number}", endpoint: "GET /r#{number}") }
    store.write_multi({ "castellan:profile:result:r0" => "{\"id\":", "castellan:profile:result:r1" => Zlib.deflate("[]"),
                        "castellan:profile:#1" => "\xFF", "castellan:profile:#2" => "5",
                        "castellan:profile:#3" => "{\"id\":\"r2\",\"of_a_later_version\":1}" })
    assert_equal %w[r3 r2], @results.latest.map(&:id)
    assert_equal [nil, nil, "r2"], %w[r0 r1 r2].map { |id| @results.find(id)&.id }
  end

  def test_a_result_takes_a_fraction_of_its_size_and_is_the_same
    store = Castellan::Store::MemoryStore.new
    query = { at_ns: 10, duration_ns: 4, rows: 2, cached: false, sql: "select 1", fingerprint: "select ?", frames: ["a.rb:1:in `x'"] }
    result = Profile::Result.new(id: "one", queries: Array.new(1_000) { |number| { **query, at_ns: number, finding: nil } })
    assert Profile::Results.new(store).add(result)
    assert_equal result, Profile::Results.new(store).find("one")
    key = "castellan:profile:result:one"
    assert_operator store.read_multi([key])[key].bytesize, :<, JSON.generate(result).bytesize / 10
  end

  # A store whose server is gone.
  class Gone
    def write_multi(*, **) = raise(Castellan::StoreError, "gone")
    def read_multi(*) = raise(Castellan::StoreError, "gone")
  end

  def test_a_failing_store_is_logged_and_has_no_results
    @results = Profile::Results.new(Gone.new, log: ->(text) { @said << text })
    refute add("a")
    assert_nil @results.find("a")
    assert_empty @results.latest
    assert_equal ["the store of profiles failed: gone"] * 3, @said
  end
end
