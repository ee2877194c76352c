# frozen_string_literal: true

require "test_helper"
require "castellan/profile"

class ProfileQueryTableTest < Minitest::Test
  Profile = Castellan::Profile
  QUERIES = [{ at_ns: 10, duration_ns: 4, rows: 2, cached: false, sql: "select 1", fingerprint: "select ?", frames: ["a.rb:1:in `x'"],
               finding: 0 },
             { at_ns: 20, duration_ns: 5, rows: nil, cached: true, sql: "select ?", fingerprint: "select ?", frames: [],
               finding: nil }].freeze
  KEY = "castellan:profile:result:one"

  def test_a_store_keeps_each_text_once_and_returns_the_queries
    store = Castellan::Store::MemoryStore.new
    results = Profile::Results.new(store)
    assert results.add(Profile::Result.new(id: "one", queries: QUERIES * 500))
    assert_equal QUERIES * 500, results.find("one").queries
    assert_operator store.read_multi([KEY])[KEY].bytesize, :<, JSON.generate(results.find("one")).bytesize / 4
  end

  def test_statements_with_their_values_are_kept_once_too
    recorder = Profile::Recorder.new(literals: true)
    3.times { recorder.query(+"SELECT 1 FROM users", nil, 0, 1, false, 1) }
    queries = Profile::QueryRows.new(recorder.log, [], from_ns: 0).to_a
    assert_equal [["select ? from users", "SELECT 1 FROM users"]] * 3, queries.map { |query| query.values_at(:fingerprint, :sql) }
    assert_equal ["SELECT 1 FROM users", "select ? from users", queries.first[:frames]], Profile::QueryTable.pack(queries)[:shared]
  end

  def test_an_inconsistent_table_is_ignored
    table = Profile::QueryTable.pack(QUERIES)
    store = Castellan::Store::MemoryStore.new
    store.write_multi({ KEY => JSON.generate(id: "one", queries: { **table, shared: [] }),
                        "castellan:profile:result:two" => JSON.generate(id: "two", queries: { shared: [] }) })
    assert_equal([nil, nil], %w[one two].map { |id| Profile::Results.new(store).find(id) })
  end
end
