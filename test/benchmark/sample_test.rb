# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/detect/sample"

class SampleTest < Minitest::Test
  include Benchmarks::Detect

  def test_the_median_lies_in_its_interval
    values = Array.new(51) { |number| number }
    least, greatest = Benchmarks::Interval.of(values)
    assert_operator least, :<, 25
    assert_operator greatest, :>, 25
    assert_operator greatest - least, :<, 30
    assert_equal [least, greatest], Benchmarks::Interval.of(values), "the same values have the same interval"
    assert_equal [4, 4], Benchmarks::Interval.of([4])
  end

  # The second of a pair is slower by a tenth, and the contender costs a hundredth.
  def test_the_cost_of_the_order_cancels_out
    first, second = 100, 110
    rounds = Array.new(9) do |number|
      pairs = [[first, second * 1.01], [second, first * 1.01]]
      (number.odd? ? pairs.reverse : pairs).map { |pair| pair.map { |ms| (ms * 1_000_000).round } }
    end
    sample = Sample.new(rounds)
    assert_in_delta 1.0, sample.share, 1e-6
    sample.interval.each { |bound| assert_in_delta 1.0, bound, 1e-6 }
    assert_equal [[105.0, 106.05], [110.0, 111.1]], [sample.mean, sample.max].map { |pair| pair.map { |ms| ms.round(2) } }
  end

  def test_a_round_that_was_disturbed_changes_no_median
    calm = [[[100, 101], [100, 101]]] * 8
    assert_in_delta 1.0, Sample.new([*calm, [[100, 900], [100, 101]]]).share, 1e-6
  end
end
