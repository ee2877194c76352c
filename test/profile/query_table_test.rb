# frozen_string_literal: true

require "test_helper"
require "castellan/profile"

class ProfileQueryTableTest < Minitest::Test
  Profile = Castellan::Profile
  TABLE = { texts: ["select ?", "select 1"], frames: [["a.rb:1:in `x'"], []],
            cells: "10,4,2,false,1,0,0,0,20,5,null,true,0,0,1,null" }.freeze
  QUERIES = [{ at_ns: 10, duration_ns: 4, rows: 2, cached: false, sql: "select 1", fingerprint: "select ?", frames: ["a.rb:1:in `x'"],
               finding: 0 },
             { at_ns: 20, duration_ns: 5, rows: nil, cached: true, sql: "select ?", fingerprint: "select ?", frames: [],
               finding: nil }].freeze

  def result = Profile::Result.new(id: "one", queries: Profile::QueryTable.new(**TABLE))

  def test_its_queries_equal_those_of_the_result
    assert_equal QUERIES, Profile::QueryTable.new(**TABLE).to_a
    assert_equal TABLE, Profile::QueryTable.new(**TABLE).to_h
  end

  def test_a_result_with_a_table_is_the_one_with_its_queries
    whole = Profile::Result.new(id: "one", queries: QUERIES)
    assert_equal [whole, QUERIES], [result, result.queries]
    assert_equal whole.to_h, result.to_h
    assert_equal JSON.generate(whole), JSON.generate(result)
    assert Ractor.shareable?(result)
  end

  def test_a_store_keeps_each_text_once_and_gives_back_the_queries
    store = Castellan::Store::MemoryStore.new
    results = Profile::Results.new(store)
    many = Profile::QueryTable.new(**TABLE, cells: ([TABLE[:cells]] * 500).join(","))
    assert results.add(Profile::Result.new(id: "one", queries: many))
    assert_equal QUERIES * 500, results.find("one").queries
    key = "castellan:profile:result:one"
    assert_operator store.read_multi([key])[key].bytesize, :<, JSON.generate(results.find("one")).bytesize / 4
  end

  def test_texts_as_they_were_sent_are_kept_once_too
    recorder = Profile::Recorder.new(literals: true)
    3.times { recorder.query(+"SELECT 1 FROM users", nil, 0, 1, false, 1) }
    table = Profile::QueryRows.new(recorder, [], from_ns: 0, literals: true).to_table
    assert_equal ["select ? from users", "SELECT 1 FROM users"], table.to_h[:texts]
  end

  def test_an_inconsistent_table_is_ignored
    store = Castellan::Store::MemoryStore.new
    store.write_multi({ "castellan:profile:result:one" => JSON.generate(id: "one", queries: { **TABLE, texts: [] }),
                        "castellan:profile:result:two" => JSON.generate(id: "two", queries: { texts: [] }) })
    assert_equal([nil, nil], %w[one two].map { |id| Profile::Results.new(store).find(id) })
  end
end
