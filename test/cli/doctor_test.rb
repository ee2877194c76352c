# frozen_string_literal: true

require "test_helper"
require "support/own_databases"
require "castellan/cli"
require "open3"
require "stringio"

# The arguments of `castellan doctor`, in this process; test/doctor runs it on applications.
class DoctorCommandTest < Minitest::Test
  include Castellan::OwnDatabases

  def test_help_is_printed_without_booting_the_application
    status, out, = doctor("--help")
    assert_equal 0, status
    assert_includes out, "castellan doctor [config.ru | app.rb] --get PATH"
  end

  def test_invalid_arguments_exit_with_status_two
    { [] => "name a request: castellan doctor --get /users", ["--get"] => "missing argument: --get",
      ["--get", "/", "-H", "no colon"] => "\"no colon\" is not of the form 'Name: value'",
      ["--get", "/", "-H", ": x"] => "is not of the form",
      ["--get", "/", "--runs", "0"] => "--runs 0: at least 1",
      ["--get", "/", "--limit", "0"] => "--limit 0.0: more than 0 seconds", ["--slow"] => "invalid option: --slow",
      ["a.ru", "b.ru", "--get", "/"] => "b.ru" }.each do |arguments, said|
      status, _, err = doctor(*arguments)
      assert_equal 2, status, arguments.inspect
      assert_includes err, said
    end
  end

  def test_invalid_requests_are_rejected_before_the_application_boots
    { ["--get", "users"] => "\"users\" is not a path or a URL; write it as /path?name=value",
      ["--curl", "curl -d x /a"] => "GET and HEAD only",
      ["-X", "POST", "--get", "/"] => "GET and HEAD only, not POST" }.each do |arguments, said|
      status, _, err = doctor("nowhere.ru", *arguments)
      assert_equal 2, status
      assert_includes err, said
    end
  end

  def test_the_verb_may_be_head
    Dir.mktmpdir do |dir|
      rackup = File.join(dir, "verb.ru")
      File.write(rackup, 'run ->(env) { [200, {}, [env["REQUEST_METHOD"]]] }')
      with_env("RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil) do
        status, out, err = doctor(rackup, "-X", "head", "--get", "/", "--no-memory")
        assert_equal 0, status, err
        assert_includes out, "HEAD / → 200"
      end
    end
  end

  def test_an_error_in_bytes_that_are_no_text_is_printed
    Dir.mktmpdir do |dir|
      rackup = File.join(dir, "bytes.ru")
      File.write(rackup, 'run ->(_env) { raise "caf\xE9" }')
      with_env("RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil) do
        status, _, err = doctor(rackup, "--get", "/", "--no-memory")
        assert_equal 1, status
        assert_includes err, "GET /: the application raised an error, so there is nothing to measure: RuntimeError: caf\uFFFD"
      end
    end
  end

  def test_a_folder_that_cannot_be_written_is_named
    status, _, err = doctor("nowhere.ru", "--get", "/", "--bodies", File.join(__FILE__, "bodies"))
    assert_equal 1, status
    assert_match(/\Acastellan doctor: .*doctor_test\.rb/, err)
  end

  def test_further_headers_go_with_a_copied_command
    Dir.mktmpdir do |dir|
      rackup = File.join(dir, "headers.ru")
      File.write(rackup, 'run ->(env) { [200, {}, [env.values_at("HTTP_A", "HTTP_B", "HTTP_HOST").join(" ")]] }')
      with_env("RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil) do
        copied = "curl 'http://x.example/' -H 'A: 1' -H 'B: 2'"
        status, out, err = doctor(rackup, "--curl", copied, "-H", "B: 3", "--bodies", dir, "--no-memory")
        assert_equal 0, status, err
        assert_includes out, "GET / → 200"
        assert_equal "1 3 x.example", File.read(File.join(dir, "1.body"))
      end
    end
  end

  def test_bodies_go_to_their_folder_if_the_application_changes_its_own
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "moving.ru"), 'run ->(_env) { Dir.chdir("/") && [200, {}, ["ok"]] }')
      exe = [Gem.ruby, "-I", File.expand_path("../../lib", __dir__), File.expand_path("../../exe/castellan", __dir__)]
      _, err, status = Open3.capture3(*exe, "doctor", "moving.ru", "--get", "/", "--no-memory", "--bodies", "bodies", chdir: dir)
      assert status.success?, err
      assert_equal "ok", File.read(File.join(dir, "bodies/1.body"))
    end
  end

  def test_the_ledger_keeps_the_figures_of_each_step
    Dir.mktmpdir do |dir|
      rackup, ledger = File.join(dir, "steps.ru"), File.join(dir, "ledger.jsonl")
      File.write(rackup, 'run ->(_env) { [200, {}, [%({"a":1})]] }')
      with_env("RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil) do
        first = doctor(rackup, "--get", "/", "--no-memory", "--ledger", ledger, "--step", "as it was")
        assert_match(%r{^## GET /\n\n\| step +\| compared \|.*\n.*\n\| as it was \| +\|.* 7 B \|\n\z}, first[1])
        File.write(rackup, 'run ->(_env) { [200, {}, [%({"a":2})]] }')
        second = doctor(rackup, "--get", "/", "--no-memory", "--ledger", ledger, "--json")
        assert_equal [0, "GET /"], [second[0], JSON.parse(second[1])["request"]]
      end
      status, out, = doctor("--ledger", ledger)
      assert_equal 0, status
      assert_match(/^\| step 2 .* 7 B, changed \|$/, out)
    end
  end

  def test_a_ledger_that_cannot_be_used_is_named_before_the_application_boots
    { ["--step", "x", "--ledger", "x.jsonl", "--check", "/"] => [2, "--step x: name a request to measure, such as --get /users"],
      ["--step", "x", "--get", "/"] => [2, "--step x: also name the ledger, such as --ledger ledger.jsonl"],
      ["--get", "/", "--ledger", __FILE__] => [1, "doctor_test.rb:1 is not JSON, so this is no ledger"],
      ["--ledger", "#{__FILE__}.jsonl"] => [1, "has no steps; name a request"],
      ["--get", "/", "--ledger", File.join(__FILE__, "ledger")] => [1, "doctor_test.rb"] }.each do |arguments, (status, said)|
      answered, _, err = doctor("nowhere.ru", *arguments)
      assert_equal status, answered, err
      assert_includes err, said
    end
  end

  private

  def doctor(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Castellan::CLI.call(["doctor", *arguments], out: out, err: err), out.string, err.string]
  end
end
