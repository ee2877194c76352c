# frozen_string_literal: true

require "test_helper"
require "castellan/profile"
require "json"

class ProfileResultTest < Minitest::Test
  Result = Castellan::Profile::Result

  WHOLE = {
    id: "a-1", at: 1.5, method: "GET", path: "/users", query: "a=1", headers: { "accept" => "*/*" }, endpoint: "GET /users", status: 200,
    response_bytes: 7, duration_ns: 9, parts: { sql_ns: 4, render_ns: 1, cache_ns: 0, gc_ns: 0, outside_ns: 4 },
    objects: { count: 3, scope: "process", overlapping: 0 },
    queries: [{ at_ns: 1, duration_ns: 4, rows: 2, cached: false, sql: "select ?", fingerprint: "select ?", frames: ["a.rb:1:in `x'"],
                finding: 0 }],
    cache: [{ layer: "document", outcome: "hit", at_ns: 1, duration_ns: 1 }], findings: [{ kind: "n_plus_one", preload: { posts: {} } }],
    memory: { total_allocated: 1, by_gem: [{ name: "rack", allocated: 1 }] }, flame: { "$schema" => "x", "shared" => { "frames" => [] } }
  }.freeze

  def test_it_is_read_back_from_json
    result = Result.new(**WHOLE)
    assert_equal result, Result.from_h(JSON.parse(JSON.generate(result.to_h)))
    assert_equal result, Result.from_h(result.to_h)
    assert_equal "x", Result.from_h(JSON.parse(JSON.generate(result.to_h))).flame["$schema"]
  end

  def test_it_is_frozen_all_the_way_down
    result = Result.new(**WHOLE)
    assert Ractor.shareable?(result)
    assert_raises(FrozenError) { result.queries.first[:sql] << "x" }
  end

  def test_missing_fields_are_empty_and_unknown_ones_raise
    assert_equal [[], 0, nil, 0], Result.new(id: "a").then { |one| [one.queries, one.parts[:sql_ns], one.memory, one.totals[:queries]] }
    assert_includes assert_raises(ArgumentError) { Result.new(id: "a", nope: 1) }.message, "has no :nope"
  end

  def test_known_fields_of_another_version_are_read
    assert_equal "a", Result.from_h("id" => "a", "tomorrow" => 1).id
  end
end
