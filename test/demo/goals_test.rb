# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"

class DemoGoalsTest < Minitest::Test
  def test_goals_are_judged_by_the_existing_rows
    goals = goals_of(row("users_1000", "last_login", duration_ms: 300.0, allocated_objects: 9_000),
                     row("users_1000", "castellan", duration_ms: 7.5, allocated_objects: 100))
    assert_equal [["40.0 ×", "≥ 30 ×", true], ["90.0 ×", "≥ 100 ×", false]], goals.map { |goal| goal.values_at(:measured, :goal, :reached) }
  end

  def test_a_comparison_without_a_goal_is_a_ratio
    rows = [row("posts", "public", requests_per_s: 250.0, step: "Rails"), row("posts", "limit", requests_per_s: 2_000.0, step: "Constant")]
    assert_empty goals_of(*rows)
    assert_equal [{ story: "posts", step: "Rails", against: "Constant", on: :requests_per_s }], Castellan::Demo::Goals.new(rows).ratios
  end

  def test_without_rows_there_is_nothing_to_judge
    assert_empty goals_of
    assert_empty goals_of(row("posts", "document", requests_per_s: 1.0), row("posts", "limit", requests_per_s: 0.0))
  end

  private

  def goals_of(*rows) = Castellan::Demo::Goals.new(rows).to_a
  def row(story, id, **fields) = { story: story, id: id, **fields }
end
