# frozen_string_literal: true

require "test_helper"
require "stringio"
require_relative "../../bin/support/test_run"

# What bin/test does with its arguments; that it runs the tests is seen by running it.
class TestRunTest < Minitest::Test
  def test_a_file_that_is_not_there_is_named_before_anything_is_installed
    said = StringIO.new
    assert_equal 2, Castellan::TestRun.new(%w[test/nothing_test.rb -n /x/], out: said).call
    assert_equal "bin/test: there is no test/nothing_test.rb\n", said.string
  end

  def test_the_example_in_the_file_is_one
    named = File.read(File.join(ROOT, "bin/test"))[%r{test/\w+_test\.rb}]
    assert_path_exists File.join(ROOT, named)
  end
end
