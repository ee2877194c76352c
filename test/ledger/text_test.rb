# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo/ledger"

class LedgerTextTest < Minitest::Test
  def setup
    @ledger = Castellan::Demo::Ledger.new
    @ledger.add(story: "users", step: "baseline", duration_ms: 812.0, queries: 1_139, allocated_bytes: 60_000_000, retained_bytes: 9)
    @ledger.add(story: "users", step: "bad \e[31mstep", duration_ms: 90.0, wrong: "users/3: roles")
  end

  def test_columns_are_aligned_and_reasons_are_below
    text = @ledger.to_text(width: 120)
    assert_match(/\| baseline +\| +812 \| +\| +1,139 \| +60\.0 MB \| +9 B \|/, text)
    assert_includes text, "wrong: users/3: roles"
    assert_equal 1, text.lines.grep(/\A\|/).map { |line| line.chomp.length }.uniq.size
  end

  def test_columns_that_do_not_fit_are_left_out_from_the_right
    text = @ledger.to_text(width: 60)
    assert_operator text.lines.grep(/\A\|/).map { |line| line.chomp.length }.max, :<=, 60
    assert_includes text, "queries"
    refute_includes text, "retained"
  end

  def test_control_characters_do_not_reach_the_terminal
    refute_includes @ledger.to_text(width: 120), "\e"
  end
end
