# frozen_string_literal: true

require "test_helper"
require "open3"
require_relative "../../benchmark/support/own_bundle"
require_relative "../../benchmark/support/apart"

class OwnBundleTest < Minitest::Test
  def test_separate_work_returns_its_result_and_leaves_nothing_behind
    before = $PROGRAM_NAME
    assert_equal({ "a" => [1, nil] }, Benchmarks::Apart.call { $PROGRAM_NAME = "apart" and { "a" => [1, nil] } })
    assert_equal before, $PROGRAM_NAME
  end

  def test_failing_separate_work_ends_the_run_with_its_status
    script = 'Benchmarks::Apart.call { abort "no" }; puts "went on"'
    apart = File.join(ROOT, "benchmark/support/apart")
    output, status = Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "--disable-gems", "-r#{apart}", "-e", script)
    assert_equal ["no\n", 1], [output, status.exitstatus]
  end

  def test_separate_work_runs_no_exit_handler_of_its_parent
    script = 'at_exit { puts "left" }; Benchmarks::Apart.call { print "worked, " }'
    apart = File.join(ROOT, "benchmark/support/apart")
    output, status = Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "--disable-gems", "-r#{apart}", "-e", script)
    assert_equal ["worked, left\n", true], [output, status.success?]
  end

  def test_the_bundle_names_no_server
    assert_includes File.read(Benchmarks::OwnBundle::GEMFILE), "source Gem.sources.first.uri.to_s"
  end
end
