# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class ProductionDistributionTest < Minitest::Test
  def test_small_values_are_exact
    distribution = of(*1..100)
    assert_equal [50, 95, 99, 100], distribution.to_h.values
    assert_equal [100, 5050], [distribution.count, distribution.sum]
  end

  def test_great_values_are_at_most_five_percent_too_great
    random = Random.new(3)
    values = Array.new(2_000) { (10**random.rand(2.0..12.0)).to_i }
    distribution = of(*values)
    [1, 50, 95, 99, 100].each do |share|
      exact = values.sort[(values.size * share / 100) - 1]
      assert_includes exact..(exact * 1.0501), distribution.percentile(share)
    end
  end

  def test_the_memory_is_bounded
    distribution = of(*Array.new(60) { |power| 2**power }, *1..5_000)
    assert_operator distribution.instance_variable_get(:@steps).size, :<, 600
  end

  def test_none_and_a_copy
    distribution = of
    copy = distribution.dup
    distribution.add(7)
    assert_equal [0, 0, 7], [copy.percentile(99), copy.max, distribution.percentile(1)]
  end

  private

  def of(*values)
    Castellan::Detect::Production::Distribution.new.tap { |distribution| values.each { |value| distribution.add(value) } }
  end
end
