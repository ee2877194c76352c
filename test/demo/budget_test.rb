# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"

class BudgetTest < Minitest::Test
  def test_each_step_gets_its_seconds_while_the_budget_lasts
    assert_equal [5, 5], budget(seconds: 5, steps: 2, elapsed: 100).then { |budget| [budget.take, budget.take] }
  end

  def test_a_slow_machine_gets_less_and_never_nothing
    assert_in_delta 2.5, budget(seconds: 5, steps: 20, elapsed: 100).take
    assert_in_delta 1.0, budget(seconds: 5, steps: 20, elapsed: 200).take
    assert_in_delta 0.3, budget(seconds: 0.3, steps: 20, elapsed: 200).take
  end

  private

  def budget(seconds:, steps:, elapsed:)
    Castellan::Demo::Budget.new(seconds: seconds, steps: steps, elapsed: -> { elapsed.to_f })
  end
end
