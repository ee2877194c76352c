# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "stringio"
require_relative "../../examples/support/demo"

# `bin/demo` with short loads: all stories, the ledger, Ctrl-C, and invalid arguments.
class DemoCommandTest < Minitest::Test
  FIELDS = %w[story step duration_ms sql_ms queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes
              requests_per_s mean_ms min_ms max_ms p50_ms p95_ms p99_ms availability concurrency transferred_bytes story_value verdict
              finding environment].freeze

  def test_every_story_is_replayed_shortly
    needs :redis, :nginx
    out, err, status, rows = demo("--seconds", "0.3", "--runs", "1")
    assert_equal 0, status, err
    assert_equal %w[users users_1000 posts mail_logs], rows.map { |row| row["story"] }.uniq
    assert_equal [FIELDS.sort], rows.map { |row| (row.keys & FIELDS).sort }.uniq
    assert_wrong_steps(rows)
    assert_users(rows)
    assert_match(/constant bytes from the same Puma, rate: [\d.]+ ×/, out)
    assert_match(%r{the report is \S+/index\.html}, out)
    assert_includes err, "47/47"
    assert_match(/^left out: .*notifies of a change \(DATABASE_URL=postgres.* is missing\)$/, out)
  end

  def test_ctrl_c_shows_the_figures_so_far_and_stops_the_server
    Dir.mktmpdir do |dir|
      status, out, err = interrupted(dir)
      assert_equal 130, status, err
      assert_includes err, "interrupted; this was measured until now:"
      assert_includes out, "models to hashes to JSON"
      assert_operator JSON.parse(File.read(File.join(dir, "ledger.json"))).size, :>=, 1
      assert_empty servers_of(dir)
    end
  end

  def test_wrong_arguments_are_errors
    { ["--only", "userz"] => "there is no story userz", ["--seconds", "0"] => "--seconds 0.0: more than 0",
      ["--runs", "0"] => "--runs 0: at least 1", ["again"] => "again", ["--fast"] => "--fast" }.each do |arguments, said|
      status, _, err = called(*arguments)
      assert_equal 2, status
      assert_includes err, said
    end
  end

  def test_an_unwritable_report_is_an_error_before_anything_is_measured
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "file"), "")
      status, out, err = called("--no-open", "--report", File.join(dir, "file/report"))
      assert_equal 1, status
      assert_includes err, "the report cannot be written to #{dir}/file/report"
      assert_equal ["", 1], [out, err.lines.size]
    end
  end

  private

  def assert_wrong_steps(rows)
    wrong = rows.select { |row| row["verdict"] == "wrong" }
    assert_equal %w[users users users posts posts posts], wrong.map { |row| row["story"] }
    assert(rows.all? { |row| row["step"].include?("as told") == (row["verdict"] == "wrong") })
  end

  def assert_users(rows)
    users = rows.select { |row| row["story"] == "users" }
    assert(users.all? { |row| row.values_at("duration_ms", "queries", "allocated_objects", "response_bytes").all? })
    # The doctor counts no bytes of slower requests.
    assert_empty(users.reject { |row| row["retained_bytes"] || row["duration_ms"] >= 5_000 })
    assert_operator users.first["queries"], :>, 1_000
    assert_operator users.last["queries"], :<, 5
    assert_equal 7_795, users.first["story_value"]
  end

  def environment = { "DATABASE_URL" => nil, "BUNDLE_GEMFILE" => File.join(ROOT, "Gemfile"), "RUBYOPT" => "-W0" }

  # As bin/demo does once everything is installed.
  def program(*arguments)
    demo = ["-I#{File.join(ROOT, "lib")}", "-r#{File.join(ROOT, "examples/support/demo")}", "-e", "exit Castellan::Demo::Command.new(ARGV).call"]
    [environment, RbConfig.ruby, "-S", "bundle", "exec", RbConfig.ruby, *demo, "--", *arguments]
  end

  def command(*arguments)
    out, err, status = Bundler.with_unbundled_env { Open3.capture3(*program(*arguments), stdin_data: "") }
    [out, err, status.exitstatus]
  end

  # In this process, where nothing is measured.
  def called(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Castellan::Demo::Command.new(arguments, out: out, err: err).call, out.string, err.string]
  end

  def demo(*arguments)
    Dir.mktmpdir do |dir|
      out, err, status = command("--no-open", "--report", dir, *arguments)
      ledger = File.join(dir, "ledger.json")
      [out, err, status, File.exist?(ledger) ? JSON.parse(File.read(ledger)) : []]
    end
  end

  # Interrupted when the first step is measured, as a terminal does it: the demo's process group, not its servers'.
  def interrupted(dir)
    arguments = program("--only", "posts", "--seconds", "0.3", "--no-open", "--report", dir)
    Bundler.with_unbundled_env do
      Open3.popen3({ **arguments.shift, "TMPDIR" => dir }, *arguments, pgroup: true) do |_, out, err, thread|
        said = +""
        said << err.readline until said.match?(%r{^ +1/\d+ }) || err.eof?
        Process.kill(:INT, -thread.pid)
        said << err.read
        [thread.value.exitstatus, out.read, said]
      end
    end
  end

  # The servers' environment names the directory for temporary files that only this test has.
  def servers_of(dir)
    Dir.glob("/proc/[0-9]*").select { |process| environment_of(process).include?("TMPDIR=#{dir}") }
  end

  def environment_of(process)
    File.binread(File.join(process, "environ"))
  rescue SystemCallError
    "" # it has ended, or belongs to another user
  end
end
