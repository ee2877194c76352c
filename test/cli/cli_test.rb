# frozen_string_literal: true

require "test_helper"
require "castellan/cli"
require "stringio"

# The dispatch of commands; each command has its own test.
class CLITest < Minitest::Test
  def test_help_names_every_command
    [[], %w[help], %w[-h], %w[--help]].each do |arguments|
      status, out, = castellan(*arguments)
      assert_equal 0, status
      assert_equal %w[cache doctor load new proxy types], out.scan(/^  castellan (\w+)/).flatten
    end
  end

  def test_help_of_one_command_describes_that_command
    %w[doctor load siege].each do |name|
      assert_equal castellan(name, "--help"), castellan("help", name)
    end
    refute_equal castellan("help"), castellan("help", "load")
  end

  def test_the_version_is_printed
    [%w[version], %w[-v], %w[--version]].each do |arguments|
      assert_equal [0, "castellan #{Castellan::VERSION}\n", ""], castellan(*arguments)
    end
  end

  def test_an_unknown_command_suggests_the_nearest_one
    [%w[docter --get /], %w[help docter]].each do |arguments|
      status, out, err = castellan(*arguments)
      assert_equal [2, ""], [status, out]
      assert_match(/\Acastellan: there is no command "docter".*doctor/, err)
    end
  end

  private

  def castellan(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Castellan::CLI.call(arguments, out: out, err: err), out.string, err.string]
  end
end
