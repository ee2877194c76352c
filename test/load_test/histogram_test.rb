# frozen_string_literal: true

require "test_helper"
require "castellan/load_test"

class LoadTestHistogramTest < Minitest::Test
  Histogram = Castellan::LoadTest::Histogram

  def test_percentiles_are_by_nearest_rank
    histogram = histogram_of([15, 20, 35, 40, 50])
    assert_equal([15, 20, 20, 35, 50, 50], [5, 30, 40, 50, 95, 100].map { |percent| histogram.percentile(percent) })
  end

  def test_agrees_with_sorting_within_a_thousandth
    random = Random.new(7)
    values = Array.new(5_000) { (10**random.rand(2.0..10.0)).to_i }
    histogram = histogram_of(values)
    ["0.1", 1, 25, 50, 90, 95, 99, "99.9", 100].each do |percent|
      exact = values.sort[(Rational(percent) * values.size / 100).ceil - 1]
      assert_includes exact..(exact * 1.001).ceil, histogram.percentile(percent.to_f), "p#{percent}"
    end
  end

  def test_counts_sum_and_extremes_are_exact
    histogram = histogram_of([3_000_001, 5, 70_000_003])
    assert_equal [3, 73_000_009, 5, 70_000_003], [histogram.count, histogram.sum, histogram.min, histogram.max]
    assert_in_delta 24_333_336.33, histogram.mean, 0.01
  end

  def test_merging_is_recording_both
    both = histogram_of([5, 9_000_000]).merge(histogram_of([1, 70_000]))
    assert_equal [4, 1, 9_000_000, 5], [both.count, both.min, both.max, both.percentile(50)]
  end

  def test_an_empty_one_has_no_percentile
    assert_nil Histogram.new.percentile(99)
    assert_nil Histogram.new.mean
    assert_equal 0, Histogram.new.merge(Histogram.new).count
  end

  def test_memory_is_bounded
    histogram = Histogram.new
    200_000.times { |value| histogram.record(value * 50_021) }
    assert_operator histogram.instance_variable_get(:@buckets).size, :<, 2_048 * 40
  end

  def test_a_percentile_is_above_0_and_at_most_100
    [0, -1, 101].each { |percent| assert_raises(ArgumentError) { Histogram.new.percentile(percent) } }
  end

  private

  def histogram_of(values)
    values.inject(Histogram.new) { |histogram, value| histogram.record(value) }
  end
end
