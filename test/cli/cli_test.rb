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
      assert_match(/\AUsage: castellan #{name.sub("siege", "load")} .*\n\n[A-Z].*\.\n\n/, castellan(name, "--help")[1])
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

  def test_an_option_without_a_valid_value_is_answered_with_its_line_of_the_help
    limit = "write --limit SECONDS, seconds for all requests and trials together (120)"
    clients = "write -c, --clients N, clients at the same time"
    { %w[doctor --limit x] => "invalid argument: --limit x: #{limit}", %w[doctor --limit=1s] => "invalid argument: --limit=1s: #{limit}",
      %w[doctor --lim] => "missing argument: --lim: #{limit}", %w[load -c x] => "invalid argument: -c x: #{clients}",
      %w[load -cx] => "invalid argument: -cx: #{clients}",
      %w[load --expect a] => 'invalid argument: --expect "a": write statuses such as 200,304 or 200-299',
      %w[load --nonsense] => "invalid option: --nonsense" }.each do |arguments, message|
      status, _, err = castellan(*arguments)
      assert_equal [2, "castellan #{arguments.first}: #{message}"], [status, err.lines.first.chomp]
    end
  end

  private

  def castellan(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Castellan::CLI.call(arguments, out: out, err: err), out.string, err.string]
  end
end
