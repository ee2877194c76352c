# frozen_string_literal: true

require "test_helper"
require "pty"
require "stringio"
require "support/own_databases"
require "castellan/cli"
require_relative "doctor_process"

# The progress of slow steps, and the limit of all steps together.
class ProgressTest < Minitest::Test
  include Castellan::DoctorProcess
  include Castellan::OwnDatabases

  SLOW = "run(->(_env) { IO.select(nil, nil, nil, 2.3) || [200, {}, ['ok']] })\n"
  # The request of the given number, and each later one, is not answered.
  HANGING = <<~RUBY
    number = 0
    run(lambda do |env|
      IO.select([IO.pipe.first]) if (number += 1) >= Integer(env["QUERY_STRING"])
      [200, {}, ["ok"]]
    end)
  RUBY
  # As Rails does.
  RESCUING = HANGING.sub(/IO\.select.*/) { |line| "begin\n#{line}\nrescue Exception\nnext [500, {}, []]\nend" }.freeze
  AUTHORS = <<~RUBY
    require "sequel"
    DB = Sequel.connect("sqlite://books.sqlite3")
    DB.create_table?(:authors) { primary_key :id; String :name }
    DB.create_table?(:books) { primary_key :id; foreign_key :author_id, :authors }
    class Author < Sequel::Model; end
    class Book < Sequel::Model; many_to_one :author; end
    3.times { |n| Book.create(author: Author.create(name: n.to_s)) } if Book.count.zero?
    number = 0
    run(lambda do |_env|
      Author.create(name: "of a request")
      books = Book.order(:id).all
      names = books.map { |book| book.author.name }
      IO.select([IO.pipe.first]) if (number += 1) > 4
      [200, {}, [names.join]]
    end)
  RUBY

  def setup
    super
    @dir = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  def test_each_slow_step_is_one_line_where_there_is_no_terminal
    with_app({ "config.ru" => SLOW }) do |app|
      run = app.doctor("--get", "/slow", "--runs", "1", "--no-memory", "--json")
      assert_equal 0, run.status, run.err
      steps = ["the first request", "watching for repeated queries", "measured run 1 of at most 1"]
      assert_equal steps.map { |step| "castellan doctor: GET /slow: #{step} …" }, run.err.lines(chomp: true)
      assert_equal 1, run.rows.size, "standard output is the result's alone"
    end
  end

  def test_a_terminal_has_one_line_with_the_seconds
    master, terminal = PTY.open
    progress = Castellan::Doctor::Progress.new(terminal)
    progress.step = "a slow step"
    assert_equal "\r\e[Kcastellan doctor: a slow step, 2 s", master.readpartial(200)
    progress.stop
    assert_equal "\r\e[K", master.readpartial(200)
  ensure
    [master, terminal].compact.each(&:close)
  end

  def test_a_limit_interrupts_a_request_and_reports_the_figures_so_far
    { 3 => "(the profiled run)", 4 => "(one warm run)", 5 => "(the median of 2 warm runs)" }.each do |number, measured|
      ledger = File.join(@dir, "#{number}.jsonl")
      status, out, err = doctor(number == 4 ? RESCUING : HANGING, "--get", "/?#{number}", "--no-memory", "--limit", "5", "--ledger", ledger)
      assert_equal 0, status, err
      assert_includes out, measured
      assert_equal number == 3, JSON.parse(File.read(ledger))["conditions"].end_with?(", the profiled run"), "compared with measured runs"
      assert_match(/^  INCOMPLETE: the limit of 5\.0 s was reached \(--limit\); left out: measured run \d of at most 5/, out)
    end
  end

  def test_a_limit_that_leaves_nothing_to_report_is_a_failure
    reasons = { 1 => "before it was answered", 2 => "before a request was measured" }
    reasons.to_a.product([HANGING, RESCUING]).each do |(number, reason), app|
      status, out, err = doctor(app, "--get", "/?#{number}", "--limit", "1")
      assert_equal 1, status
      assert_includes err, "GET /?#{number}: the limit of 1.0 s was reached (--limit) #{reason}"
      refute_includes out, "duration"
    end
  end

  def test_fixes_that_the_limit_left_out_have_a_reason_and_nothing_is_written
    with_app({ "config.ru" => AUTHORS }) do |app|
      run = app.doctor("--get", "/", "--runs", "1", "--no-memory", "--limit", "4")
      assert_equal 0, run.status, run.err
      assert_includes run.out, "(one warm run)"
      assert_includes run.out, "   tried   not tried: the limit of 4.0 s was reached (--limit)\n"
      assert_match(%r{^castellan doctor: GET /: trying fix 1 of 1 …$}, run.err)
      refute_includes run.err, "tables changed"
    end
  end

  private

  # Runs in this process.
  def doctor(source, *arguments)
    out = StringIO.new
    err = StringIO.new
    with_app({ "config.ru" => source }) do |app|
      with_env("RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil) do
        [Castellan::CLI.call(["doctor", File.join(app.dir, "config.ru"), *arguments], out: out, err: err), out.string, err.string]
      end
    end
  end
end
