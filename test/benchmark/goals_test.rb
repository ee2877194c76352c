# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/paired"
require_relative "../../benchmark/serialize/measured"
require_relative "../../benchmark/serialize/growth"
require_relative "../../benchmark/serialize/goals"

class GoalsTest < Minitest::Test
  include Benchmarks

  # A stand-in for {Paired} with given figures.
  Figures = Struct.new(:figures) do
    def way?(name) = figures.key?(name)
    def objects(name) = figures.fetch(name).last
    def times(name, other) = Paired::Ratio.new(*([figures.fetch(other).first / figures.fetch(name).first.to_f] * 3))
  end

  def test_a_goal_is_reached_or_not_and_stays_in_the_list
    goals = goals_of("Castellan" => [10, 900], Goals::LIMIT => [8, 20], Goals::JSONAPI => [650, 400_000], Goals::AMS => [400, 800_000])
    assert_equal "**not reached**", verdict(goals, "≥ 70 × jsonapi-serializer")
    assert_equal "reached", verdict(goals, "≥ 30 × ActiveModel::Serializers")
    assert_equal "reached", verdict(goals, "the SELECTs alone")
    assert_equal "reached", verdict(goals, "≤ 1 object a user")
    assert_equal "reached", verdict(goals, "≤ 1/100 of the objects")
  end

  def test_a_way_that_was_not_measured_has_no_goal
    goals = goals_of("Castellan" => [10, 900], Goals::LIMIT => [8, 20], Goals::AMS => [400, 800_000])
    assert_empty(goals.select { |goal| goal.text.include?("Panko, nested") })
    assert_equal "reached", verdict(goals, "≥ 30 × ActiveModel::Serializers")
  end

  def test_growth_compares_a_user_of_the_longest_list_with_one_of_a_tenth_as_many
    rows = [[1, 900.0], [100, 10.0], [1000, 12.0]].map { |users, us| { users: users, us_per_user: us } }
    assert_in_delta 1.2, Growth.steepness(rows)
  end

  private

  def goals_of(figures)
    measured = Measured.new(users: 1000)
    measured.works << Measured::Work.new(:users, "PostgreSQL", "1,000 users, from the database", {}, Figures.new(figures))
    Goals.of(measured)
  end

  def verdict(goals, text)
    goals.find { |goal| goal.text.include?(text) }.verdict
  end
end
