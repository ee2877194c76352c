# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"
require "stringio"

class ProgressTest < Minitest::Test
  def test_without_a_terminal_it_is_a_line_for_each_step
    out = StringIO.new
    progress = Castellan::Demo::Progress.new(out, total: 2)
    assert_equal :measured, progress.step("first") { :measured }
    progress.step("second") { nil }
    assert_match(%r{\A  1/2 +\d+\.\d s  first\n  2/2 +\d+\.\d s  second\n\z}, out.string)
  end

  def test_a_step_that_fails_is_not_counted
    out = StringIO.new
    progress = Castellan::Demo::Progress.new(out, total: 1)
    assert_raises(KeyError) { progress.step("first") { raise KeyError } }
    assert_empty out.string
  end
end
