# frozen_string_literal: true

require "test_helper"
require "castellan/cli"
require "open3"

# The configurations that `castellan proxy` prints are valid for the real programs; bad options are refused.
class ProxyCommandTest < Minitest::Test
  KINDS = %w[nginx varnish haproxy].freeze
  REST = ["--rest", "http://127.0.0.1:3000"].freeze

  LEGAL = [
    [], ["--only", "/posts", *REST], ["--only", "/posts,/posts/v1.0/a~b,/mail-logs/,/posts", *REST],
    ["--app", "http://[::1]:9292", "--only", "/posts", "--rest", "http://[::1]"],
    ["--app", "HTTP://127.0.0.1/"],
    ["--purger", "10.0.0.1/8,fe80::1/10,::1,0.0.0.0/1,10.0.0.0/8"]
  ].freeze

  # Options => the part of the message.
  REFUSED = {
    [] => "write nginx, varnish or haproxy", %w[squid] => "not squid",
    %w[nginx --only /a] => "--only needs --rest", %w[nginx --rest http://b] => "--rest needs --only",
    %w[nginx --app https://b] => "write http, a host and a port",
    %w[nginx --app http://a:99999] => "such as http://127.0.0.1:9292",
    %w[nginx --app http://a:0] => "write http",
    %w[nginx --app http://u:p@a] => "write http", %w[nginx --app http://a?b] => "write http",
    %w[nginx --app http://a/b] => "write http", %w[nginx --app unix:/run/puma.sock] => "write http",
    %w[nginx --app http://[:::]] => "not a URL",
    %w[nginx --listen 0] => "write a port from 1 to 65535", %w[nginx --listen 65536] => "write a port",
    ["nginx", "--only", "/", *REST] => "write a path of letters",
    ["nginx", "--only", "", *REST] => "write a path", ["nginx", "--only", "/a,,/b", *REST] => '"": write a path',
    ["nginx", "--only", "/a%20b", *REST] => "write a path",
    %w[varnish --purger all] => "write an address or a network", %w[haproxy --purger 1.2.3] => "not an address",
    %w[nginx --purger 10.0.0.0/99] => "not an address", ["nginx", "--purger", ""] => "write an address"
  }.freeze

  # Texts that end a statement, a block or a string of one of the configurations.
  INJECTED = ["\n", "\r", "\0", *";}{'\"`$\\# (|*".chars].map { |text| "#{text}evil" }.freeze

  def test_legal_options_print_configurations_that_the_programs_accept
    needs :nginx, :varnish, :haproxy
    KINDS.product(LEGAL).each do |kind, options|
      status, printed, err = run_command(kind, *options)
      assert_equal [0, ""], [status, err]
      Dir.mktmpdir { |dir| assert_accepted kind, printed.sub("/var/cache/castellan", dir), dir }
    end
  end

  def test_bad_options_print_a_correction
    REFUSED.each do |arguments, message|
      status, out, err = run_command(*arguments)
      assert_equal [2, ""], [status, out], arguments.inspect
      assert_includes err, message
    end
  end

  def test_no_option_can_inject_a_statement
    INJECTED.product(KINDS).each do |evil, kind|
      [["--app", "http://a#{evil}"], ["--app", "http://a:1#{evil}"], ["--app", "http://[::1#{evil}]"],
       ["--listen", "80#{evil}"], ["--only", "/a#{evil}", *REST], ["--only", "/a", "--rest", "http://b#{evil}"],
       ["--purger", "::1#{evil}"], ["--purger", "10.0.0.0/8#{evil}"], ["--dir", "/a#{evil}"]].each do |options|
        status, out, err = run_command(kind, *options)
        assert_equal [2, ""], [status, out], options.inspect
        assert_includes err, "invalid argument"
      end
    end
  end

  private

  def run_command(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Castellan::CLI.call(["proxy", *arguments], out: out, err: err), out.string, err.string]
  end

  def assert_accepted(kind, printed, dir)
    printed = "pid #{dir}/pid; events {} http { #{printed} }" if kind == "nginx"
    File.write(file = File.join(dir, "conf"), printed)
    program = Castellan::TestServers.binary(kind.to_sym)
    options = { "nginx" => ["-t", "-q", "-p", dir, "-e", "stderr", "-c"], "haproxy" => %w[-c -q -f],
                "varnish" => ["-j", "none", "-n", "#{dir}/n", "-C", "-f"] }
    output, status = Open3.capture2e(program, *options.fetch(kind), file)
    assert_predicate status, :success?, "#{output.lines.last(20).join}\n#{printed}"
    refute_match(/\[warn|WARNING/, output) unless kind == "varnish"
  end
end
