# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo/ledger"
require "json"

class LedgerTest < Minitest::Test
  FIELDS = %w[
    story step duration_ms sql_ms queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes
    requests_per_s mean_ms min_ms max_ms p50_ms p95_ms p99_ms availability concurrency transferred_bytes story_value
    verdict finding environment
  ].freeze

  def setup
    @ledger = Castellan::Demo::Ledger.new
  end

  def test_json_is_an_array_of_rows_with_every_field
    step("baseline", duration_ms: 812.0, queries: 1_139, story_value: 7_795, environment: { "ruby" => "3.1.2" }, code: "a.rb:1")
    rows = JSON.parse(@ledger.to_json)
    assert_equal [FIELDS], rows.map(&:keys)
    assert_equal [812.0, 1_139, 7_795, nil, nil, { "ruby" => "3.1.2" }],
                 rows.first.values_at("duration_ms", "queries", "story_value", "p99_ms", "verdict", "environment")
    assert_equal [], JSON.parse(Castellan::Demo::Ledger.new.to_json)
  end

  def test_a_duration_is_better_when_it_is_shorter
    assert_equal [nil, "better", "worse", "same"], verdicts(:duration_ms, 100.0, 50.0, 60.0, 58.0)
  end

  def test_a_rate_is_better_when_it_is_higher
    assert_equal [nil, "better", "worse", "same"], verdicts(:requests_per_s, 100.0, 200.0, 150.0, 155.0)
  end

  def test_a_load_step_is_judged_by_its_rate
    step("slow answers, high rate", requests_per_s: 10.0, duration_ms: 1.0)
    assert_equal "better", step("fast", requests_per_s: 20.0, duration_ms: 2.0).verdict
  end

  def test_the_tolerance_can_be_set
    @ledger = Castellan::Demo::Ledger.new(tolerance: 0.5)
    assert_equal [nil, "same", "better"], verdicts(:duration_ms, 100.0, 70.0, 40.0)
    assert_raises(Castellan::ConfigurationError) { Castellan::Demo::Ledger.new(tolerance: 5) }
  end

  def test_a_wrong_step_has_no_rank_and_nothing_is_compared_with_it
    step("baseline", duration_ms: 100.0)
    assert_equal "wrong", step("as told", duration_ms: 1.0, wrong: "users/3: roles").verdict
    corrected = step("corrected", duration_ms: 50.0)
    assert_equal "better", corrected.verdict
    assert_equal "users/3: roles", @ledger.find("users", "as told").reason
  end

  def test_a_step_is_compared_with_the_one_that_it_names
    step("baseline", duration_ms: 100.0)
    step("cached", duration_ms: 5.0)
    other = step("another way", duration_ms: 50.0, against: "baseline")
    assert_equal %w[better baseline], [other.verdict, @ledger.before(other).step]
    assert_equal ["worse", "another way"], step("next", duration_ms: 60.0).then { |row| [row.verdict, @ledger.before(row).step] }
    refute_includes JSON.parse(@ledger.to_json).first.keys, "against"
  end

  def test_a_reference_has_no_verdict_and_is_not_a_previous_step
    ledger = Castellan::Demo::Ledger.new
    ledger.add(story: "posts", step: "naive", requests_per_s: 10)
    limit = ledger.add(story: "posts", step: "constant bytes", requests_per_s: 3_000, reference: true)
    assert_nil limit.verdict
    assert_equal "better", ledger.add(story: "posts", step: "cached", requests_per_s: 300).verdict
  end

  def test_stories_are_judged_separately
    step("baseline", duration_ms: 100.0)
    assert_nil @ledger.add(story: "posts", step: "naive", duration_ms: 1.0).verdict
  end

  def test_a_step_without_a_figure_has_no_verdict
    step("baseline", duration_ms: 100.0)
    assert_nil step("not measured").verdict
    assert_nil step("of another kind", requests_per_s: 3.0).verdict
  end

  def test_accepts_measurements_and_load_tests
    measurement = Castellan::Measurement.new(duration_ns: 812_345_678, sql_ns: 1_000_000, queries: 3, allocated_objects: 9)
    row = @ledger.add(story: "users", step: "baseline", measurement: measurement, load: { requests_per_s: 9.18, p99_ms: 4.0 })
    assert_equal [812.346, 1.0, 3, 9, nil, 9.18, 4.0],
                 [row.duration_ms, row.sql_ms, row.queries, row.allocated_objects, row.retained_bytes, row.requests_per_s, row.p99_ms]
  end

  def test_ratios_are_above_1_when_better
    step("AMS", duration_ms: 205.0, allocated_objects: 5_000)
    step("Castellan", duration_ms: 5.0, allocated_objects: 50)
    assert_in_delta 41.0, @ledger.ratio("users", "Castellan", "AMS")
    assert_in_delta 100.0, @ledger.ratio("users", "Castellan", "AMS", on: :allocated_objects)
    assert_nil @ledger.ratio("users", "Castellan", "nobody")
    assert_nil @ledger.ratio("users", "Castellan", "AMS", on: :queries)
  end

  def test_invalid_rows_raise
    { { nonsense: 1 } => "has no nonsense", { duration_ms: "fast" } => "duration_ms: must be a number",
      { duration_ms: Float::NAN } => "number", { verdict: "better" } => "derived" }.each do |fields, told|
      assert_includes assert_raises(Castellan::ConfigurationError) { step("baseline", **fields) }.message, told
    end
    assert_raises(Castellan::ConfigurationError) { step("") }
    step("twice")
    assert_includes assert_raises(Castellan::ConfigurationError) { step("twice") }.message, "already"
  end

  def test_rows_are_frozen
    assert_predicate step("baseline", duration_ms: 1.0), :frozen?
  end

  def test_markdown_has_a_table_per_story_with_its_findings
    step("baseline", duration_ms: 812.0, queries: 1_139, finding: "n_plus_one: 150 queries at a.rb:14 | b")
    step("as told", duration_ms: 90.0, wrong: "users/3: <roles>")
    @ledger.add(story: "posts", step: "naive", requests_per_s: 9.18, availability: 99.97)
    markdown = @ledger.to_markdown
    assert_match(/^\| baseline \|  812 \|         \|   1,139 \|$/, markdown)
    assert_match(/^\| as told  \| 90\.0 \| wrong   \|         \|$/, markdown)
    assert_includes markdown, "| -------- | ---: | ------- | ------: |"
    ["## users", "## posts", "- baseline: n_plus_one: 150 queries at a.rb:14 \\| b", "- as told: wrong: users/3: &lt;roles>",
     "- naive: only 99.97 % of the requests succeeded", "the same within 5 %"].each { |text| assert_includes markdown, text }
  end

  private

  def step(name, **fields) = @ledger.add(story: "users", step: name, **fields)

  def verdicts(figure, *values)
    values.each_with_index.map { |value, index| step("step #{index}", figure => value).verdict }
  end
end
