# frozen_string_literal: true

require "test_helper"
require "castellan/cli"
require "json"
require "open3"
require "stringio"
require "load_test/scripted_server"

class CLILoadTest < Minitest::Test
  OK = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
  Answered = Struct.new(:status, :out, :err)

  def test_it_prints_the_lines_of_siege_and_percentiles
    answered = against([OK], "-c", "2", "-r", "3")
    assert_equal 0, answered.status
    ["Transactions:             6 hits", "Availability:             100.00 %", "Elapsed time", "Data transferred", "Response time",
     "Transaction rate", "Throughput", "Concurrency", "Successful transactions:  6", "Failed transactions:      0",
     "Longest transaction", "Shortest transaction", "p50:", "p95:", "p99:"].each { |line| assert_includes answered.out, line }
    assert_empty answered.err
  end

  def test_json_has_the_fields_of_the_ledger
    answered = against([OK], "-c", "1", "-r", "2", "--json")
    fields = JSON.parse(answered.out)
    assert_equal [2, 0, 100.0, 10], fields.values_at("successful", "failed", "availability", "transferred_bytes")
    assert_empty %w[requests_per_s mean_ms min_ms max_ms p50_ms p95_ms p99_ms concurrency] - fields.keys
  end

  def test_the_ledger_compares_runs_of_a_url
    Dir.mktmpdir do |dir|
      ledger = File.join(dir, "ledger.jsonl")
      ScriptedServer.open([OK]) do |server|
        url = server.url.sub("//", "//ada:secret@")
        %w[models rows].each { |step| @last = load(url, "-c", "1", "-r", "2", "--ledger", ledger, "--step", step) }
        assert_includes @last.out, "\n## GET #{server.url}\n\n| step "
        assert_match(%r{^\| step +\| compared \| +req/s .*\n.*\n\| models +\| +\|.*\n\| rows +\|}, @last.out)
        without = load(url, "-c", "1", "-r", "2", "--no-keep-alive", "--ledger", ledger)
        assert_match(/^\| step 3 +\| not comparable \|/, without.out)
      end
    end
  end

  def test_sends_headers
    ScriptedServer.open([OK]) do |server|
      assert_equal 0, load(server.url, "-c", "1", "-r", "1", "-H", "Authorization: Bearer a:b", "--header", "X-Trace: 1").status
      assert_includes server.requests.first, "Authorization: Bearer a:b\r\nX-Trace: 1\r\n"
    end
  end

  def test_failures_are_printed_and_exit_with_status_1
    answered = against(["HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"], "-c", "1", "-r", "2")
    assert_equal 1, answered.status
    assert_includes answered.out, "2 × status 503"
    assert_includes answered.err, "no request succeeded"
  end

  def test_a_refused_connection_is_printed
    answered = load("http://127.0.0.1:#{free_port}/", "-c", "2", "-r", "2")
    assert_equal 1, answered.status
    assert_includes answered.out, "4 × connection refused"
  end

  def test_a_304_may_be_expected
    assert_equal 0, against(["HTTP/1.1 304 Not Modified\r\n\r\n"], "-c", "1", "-r", "2", "--expect", "200-299,304").status
  end

  def test_an_invalid_url_names_the_fix
    answered = load("localhost:3000/users")
    assert_equal 2, answered.status
    assert_includes answered.err, "castellan load: \"localhost:3000/users\" is not a URL to load: write http://localhost:3000/users\n"
  end

  def test_invalid_arguments_exit_with_status_2
    { [] => "give one URL", %w[http://a/ http://b/] => "give one URL, got 2", %w[http://a/ --nonsense] => "--nonsense",
      %w[http://a/ -c ten] => "ten", ["http://a/", "-H", "nonsense"] => "Name: value", %w[http://a/ --expect ok] => "200,304" }
      .each do |argv, told|
        answered = load(*argv)
        assert_equal 2, answered.status, argv.inspect
        assert_includes answered.err, told
      end
  end

  def test_limits_are_checked
    answered = load("http://127.0.0.1/", "-c", "0")
    assert_equal 2, answered.status
    assert_includes answered.err, "clients: must be"
  end

  def test_help_lists_the_options
    answered = load("--help")
    assert_equal 0, answered.status
    %w[--clients --repetitions --seconds --header --no-keep-alive --expect --timeout].each do |option|
      assert_includes answered.out.gsub("[no-]", "no-"), option
    end
  end

  def test_siege_is_the_same_command
    ScriptedServer.open([OK]) do |server|
      out = StringIO.new
      assert_equal 0, Castellan::CLI.call(["siege", server.url, "-c", "1", "-r", "1"], out: out, err: StringIO.new)
      assert_includes out.string, "Transactions:"
    end
  end

  def test_ctrl_c_prints_the_figures_so_far
    ScriptedServer.open([OK, OK, OK, [:hang]]) do |server|
      program = "require 'castellan/cli'; exit Castellan::CLI.call(ARGV)"
      command = [Gem.ruby, "-w", "-I", File.expand_path("../../lib", __dir__), "-e", program, "load", server.url, "-c", "1", "-t", "60"]
      Open3.popen3(*command) do |input, output, errors, process|
        input.close
        Thread.pass until server.requests.size >= 4 || !process.alive?
        Process.kill(:INT, process.pid)
        assert_includes output.read, "Interrupted; measured so far: #{server.url}"
        refute_includes errors.read, "castellan"
        assert_equal 130, process.value.exitstatus
      end
    end
  end

  private

  def against(answers, *argv)
    ScriptedServer.open(answers) { |server| load(server.url, *argv) }
  end

  def load(*argv)
    out = StringIO.new
    err = StringIO.new
    status = Castellan::CLI::LoadCommand.new(argv, out: out, err: err).call
    Answered.new(status, out.string, err.string)
  end
end
