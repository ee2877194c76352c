# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tmpdir"
require_relative "../../bin/support/test_run"

class TestRunTest < Minitest::Test
  def test_a_missing_file_is_named_before_the_installation
    said = StringIO.new
    assert_equal 2, Castellan::TestRun.new(%w[test/nothing_test.rb -n /x/], out: said).call
    assert_equal "bin/test: no such file: test/nothing_test.rb\n", said.string
  end

  def test_a_run_reports_skip_reasons_the_slowest_tests_and_failures
    Dir.mktmpdir do |directory|
      report = Castellan::RunReport.new(path = File.join(directory, "0.report"))
      12.times { |number| report.record(result("test_#{number}", seconds: number)) }
      2.times { |number| report.record(result("test_skipped_#{number}", seconds: 0, failure: Minitest::Skip.new("needs redis"))) }
      report.record(result("test_wrong", seconds: 0, failure: Minitest::Assertion.new("one is not \xE9 two")))
      report.report
      told = JSON.parse(File.read(path))
      assert_equal({ "needs redis" => 2 }, told["skips"])
      assert_equal 11.downto(2).map { |number| ["SampleTest#test_#{number}", number] }, told["slowest"].to_a
      assert_match(/\AFailure:\nSampleTest#test_wrong .*:\none is not � two/, told["failures"].join)
    end
  end

  def test_the_example_in_the_file_is_valid
    named = File.read(File.join(ROOT, "bin/test"))[%r{test/\w+_test\.rb}]
    assert_path_exists File.join(ROOT, named)
  end

  private

  def result(name, seconds:, failure: nil)
    Minitest::Result.new(name).tap do |result|
      result.klass = "SampleTest"
      result.time = seconds
      result.failures << failure if failure
    end
  end
end
