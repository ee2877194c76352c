# frozen_string_literal: true

require "test_helper"
require "castellan/ledger"

class LedgerTextTablesTest < Minitest::Test
  def setup
    @ledger = Castellan::Ledger.new
    @ledger.add(story: "users", step: "baseline", duration_ms: 812.0, queries: 1_139, allocated_bytes: 60_000_000, retained_bytes: 9)
    @ledger.add(story: "users", step: "bad \e[31mstep", duration_ms: 90.0, wrong: "users/3: roles")
  end

  def test_a_table_is_drawn_by_terminal_table
    require "terminal-table"
    text = @ledger.to_text(width: 120)
    assert_match(/│ baseline +│ +812 │ +│ +1,139 │ +60\.0 MB │ +9 B │/, text)
    assert_includes text, "wrong: users/3: roles"
  end

  def test_columns_that_do_not_fit_are_left_out_from_the_right
    require "terminal-table"
    text = @ledger.to_text(width: 60)
    assert_operator text.lines.grep(/[│╭]/).map { |line| line.chomp.length }.max, :<=, 60
    assert_includes text, "queries"
    refute_includes text, "retained"
  end

  def test_control_characters_do_not_reach_the_terminal
    refute_includes @ledger.to_text(width: 120), "\e"
  end

  def test_without_terminal_table_it_is_markdown
    program = "module Kernel; alias r require; def require(n) = n == 'terminal-table' ? raise(LoadError) : r(n); end; " \
              "require 'castellan/ledger'; l = Castellan::Ledger.new; l.add(story: 'a', step: 'b', duration_ms: 1.0); puts l.to_text"
    assert_includes IO.popen([Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", program], &:read), "| step |"
  end
end
