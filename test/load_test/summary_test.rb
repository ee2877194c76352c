# frozen_string_literal: true

require "test_helper"
require "castellan/load_test"

class LoadTestSummaryTest < Minitest::Test
  def test_percentiles_are_by_nearest_rank
    summary = summary_of([50, 15, 40, 20, 35])
    assert_equal([15, 20, 20, 35, 50, 50], [5, 30, 40, 50, 95, 100].map { |percent| summary.percentile(percent) })
    thousand = summary_of((1..1_000).to_a)
    assert_equal [1, 990, 999, 1_000], [0.1, 99, 99.9, 100].map { |percent| thousand.percentile(percent) }
  end

  def test_the_mean_and_the_extremes_are_in_milliseconds
    summary = summary_of([3_000_001, 5_000, 70_000_003])
    assert_equal [24.335, 0.005, 70.0], summary.to_h.values_at(:mean_ms, :min_ms, :max_ms)
    assert_in_delta 0.073005004, summary.concurrency, 1e-9
  end

  def test_two_summaries_are_one_of_all_requests
    both = summary_of([5, 9_000_000]) + summary_of([1, 70_000])
    assert_equal [4, 1, 5, 9_000_000], [both.successful, *[1, 50, 100].map { |percent| both.percentile(percent) }]
  end

  def test_without_a_successful_request_there_is_no_figure
    summary = summary_of([])
    assert_equal [nil] * 4, [summary.percentile(99), *summary.to_h.values_at(:mean_ms, :min_ms, :max_ms)]
    assert_equal 0, summary.concurrency
    assert_includes summary.to_text, "p99:                      -"
  end

  def test_a_percentile_is_above_0_and_at_most_100
    [0, -1, 101].each { |percent| assert_raises(ArgumentError) { summary_of([1]).percentile(percent) } }
  end

  private

  def summary_of(durations)
    counts = Castellan::LoadTest::Counts.new
    durations.each { |duration| counts.success(duration, 1) }
    request = Castellan::LoadTest::PreparedRequest.new("http://127.0.0.1/")
    Castellan::LoadTest::Summary.new(request: request, clients: 1, counts: counts, elapsed_ns: 1_000_000_000)
  end
end
