# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/way"
require_relative "../../benchmark/support/paired"

class PairedTest < Minitest::Test
  include Benchmarks

  def test_every_way_gets_as_many_turns_as_the_others_and_every_second_round_is_reversed
    calls = []
    ways = %w[one two three].map { |name| Way.new(name, nil, prepare: -> {}) { calls << name } }
    Paired.new(ways, rounds: 2, collect: false)
    assert_equal %w[one two three three two one], calls.last(6)
    assert_equal 1, calls.tally.values.uniq.size
  end

  def test_preparation_runs_for_each_call
    made = 0
    given = []
    Paired.new([Way.new("way", nil, prepare: -> { made += 1 }) { |number| given << number }], rounds: 3, collect: false)
    assert_equal given.uniq, given
  end

  def test_objects_are_those_of_one_call
    keep = nil
    way = Way.new("way", nil) { keep = Array.new(100) { Object.new } }
    assert_includes 100..120, Paired.new([way], rounds: 1, enough: 0, collect: false).objects("way")
    assert_equal 100, keep.size
  end

  def test_the_ratio_of_the_medians_lies_between_those_of_the_rounds
    ways = [Way.new("less", nil) { 10.times { Object.new } }, Way.new("more", nil) { 10_000.times { Object.new } }]
    ratio = Paired.new(ways, rounds: 5, enough: 0, collect: false).times("less", "more")
    assert_operator ratio.least, :<=, ratio.median
    assert_operator ratio.median, :<=, ratio.greatest
  end

  def test_a_ratio_prints_its_range
    assert_equal "44.7 (41.2..47.9)", Paired::Ratio.new(44.72, 41.2, 47.93).to_s
    assert_equal "0.89 (0.85..1.02)", Paired::Ratio.new(0.891, 0.85, 1.021).to_s
  end

  def test_a_goal_within_the_range_of_a_ratio_is_not_shown
    ratio = Paired::Ratio.new(2, 1.5, 2.5)
    assert_equal ["reached", "not shown", "**not reached**"], [1, 2.2, 3].map { |goal| ratio.verdict(goal) }
    assert_equal ["**not reached**", "not shown", "reached"], [1, 2.2, 3].map { |goal| ratio.verdict(goal, at_most: true) }
  end
end
