# frozen_string_literal: true

require "test_helper"
require "open3"
require_relative "divided_run"

# Together, several processes run each test class exactly once.
class DividedRunTest < Minitest::Test
  LONGEST = Castellan::DividedRun::LONGEST
  NAMES = [*Array.new(12) { |number| "Number#{number}Test" }, LONGEST.first].freeze
  PROGRAM = <<~RUBY.freeze
    require "minitest/autorun"
    require "#{ROOT}/test/support/divided_run"
    #{NAMES.inspect}.each do |name|
      tests = Class.new(Minitest::Test) do
        2.times { |number| define_method("test_\#{number}") { assert puts("\#{name} \#{number} \#{ENV.key?("CASTELLAN_DIVIDED")}").nil? } }
      end
      Object.const_set(name, tests)
    end
  RUBY

  def test_one_process_runs_all_tests_of_a_class
    Dir.mktmpdir do |directory|
      said = Array.new(3) { Thread.new { run_with("CASTELLAN_DIVIDED" => directory) } }.map(&:value)
      assert_equal NAMES.product(%w[0 1]).map { |name, test| "#{name} #{test} false" }.sort, said.flatten.sort
      assert_empty said.map { |lines| lines.map { |line| line[/\w+/] }.uniq }.flatten.tally.reject { |_, processes| processes == 1 }
    end
  end

  def test_the_longest_class_starts_first
    Dir.mktmpdir { |directory| assert_equal LONGEST.first, run_with("CASTELLAN_DIVIDED" => directory).first[/\w+/] }
  end

  def test_the_longest_classes_exist
    sources = Dir[File.join(ROOT, "test/**/*_test.rb")].map { |path| File.read(path) }
    LONGEST.each { |name| assert(sources.any? { |source| source.include?("class #{name} < Minitest::Test") }, name) }
  end

  def test_without_a_directory_one_process_runs_them_all
    assert_equal NAMES.size * 2, run_with({}).size
  end

  private

  def run_with(environment)
    output, status = Open3.capture2e(environment, RbConfig.ruby, "-e", PROGRAM)
    assert status.success?, output
    output.lines(chomp: true).filter_map { |line| line[/\w+Test \d (?:true|false)/] }
  end
end
