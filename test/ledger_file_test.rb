# frozen_string_literal: true

require "test_helper"
require "castellan/ledger"
require "stringio"

# The ledger of an application's own steps; test/ledger has the one of the demo.
class LedgerFileTest < Minitest::Test
  def setup
    @dir = Dir.mktmpdir
    @file = File.join(@dir, "ledger.jsonl")
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def test_each_step_is_compared_with_the_one_before_and_the_last_with_the_first
    add("as it was", { duration_ms: 812.0, sql_ms: 373.0, queries: 1139, response_bytes: 130_000 }, body: '{"a":1,"b":2}')
    add("preload", { duration_ms: 98.1, sql_ms: 12.0, queries: 7, response_bytes: 130_000 }, body: '{ "b": 2, "a": 1 }')
    add("fewer | fields", { duration_ms: 97.0, sql_ms: 12.0, queries: 7, response_bytes: 66_000 }, body: '{"a":1}')
    assert_equal <<~TEXT, "#{Castellan::Ledger.new(@file)}\n"
      ## GET /users

      | step            | compared |   ms | SQL ms | queries |         response |
      | --------------- | -------: | ---: | -----: | ------: | ---------------: |
      | as it was       |          |  812 |    373 |   1,139 |           130 kB |
      | preload         |    8.3 × | 98.1 |   12.0 |       7 |           130 kB |
      | fewer \\| fields |     same | 97.0 |   12.0 |       7 | 66.0 kB, changed |

      “fewer \\| fields” is 8.4 × as fast as “as it was”, and its response changed.
    TEXT
  end

  def test_a_load_test_is_compared_by_its_rate
    add("models", { requests_per_s: 100.0, p50_ms: 9.0, availability: 100.0 })
    add("rows", { requests_per_s: 50.0, p50_ms: 18.0, availability: 99.5 })
    assert_match(/^\| rows +\| +0\.50 × \| +50\.0 \| +18\.0 \| +99\.5 % \|$/, text)
  end

  def test_a_difference_within_the_runs_is_none
    add("one", { duration_ms: 100.0, range_ms: [90.0, 120.0] })
    add("two", { duration_ms: 85.0, range_ms: [80.0, 95.0] })
    add("three", { duration_ms: 60.0, range_ms: [55.0, 79.0] })
    add("four", { duration_ms: 63.09 })
    assert_equal ["same", "1.4 ×", "same"], text.scan(/^\| (?:two|three|four) *\| +([^|]+?) \|/).flatten
    assert_includes text, "“four” is 1.6 × as fast as “one”."
  end

  def test_steps_under_other_conditions_are_not_compared
    add("Ruby 3.1", { duration_ms: 100.0 }, conditions: "Ruby 3.1.2")
    add("Ruby 3.4", { duration_ms: 50.0 }, conditions: "Ruby 3.4.1")
    assert_match(/^\| Ruby 3\.4 +\| not comparable \|/, text)
    refute_includes text, "as fast as"
  end

  def test_requests_have_tables_of_their_own_and_steps_without_a_name_a_number
    ledger = Castellan::Ledger.new(@file)
    %w[/a /b /a].each { |path| ledger.add(request: "GET #{path}", step: nil, conditions: "", figures: { duration_ms: 1.0 }) }
    assert_equal ["## GET /a", "step 1", "step 2", "## GET /b", "step 1"], ledger.to_s.scan(/^## .*|(?<=^\| )step \d/)
    refute_includes ledger.to_s("GET /b"), "/a"
  end

  def test_bytes_that_are_no_json_are_compared_as_they_are
    add("one", { response_bytes: 2 }, body: "\xFF[".b)
    add("two", { response_bytes: 2 }, body: "\xFE[".b)
    assert_match(/2 B, changed \|$/, text)
  end

  def test_gzip_is_compared_by_what_it_contains
    add("one", { response_bytes: 30 }, body: gzip('{"a":1,"b":2}', 1_700_000_000))
    add("two", { response_bytes: 30 }, body: gzip('{"b":2,"a":1}', 1_700_000_001))
    add("broken", { response_bytes: 30 }, body: "\x1F\x8B no gzip".b)
    assert_equal ["30 B", "30 B", "30 B, changed"], text.scan(/\| +(30 B.*) \|$/).flatten
  end

  def test_a_step_is_added_after_a_last_line_without_a_newline
    add("one", { duration_ms: 1.0 })
    File.truncate(@file, File.size(@file) - 1)
    2.times { add(nil, { duration_ms: 1.0 }) }
    assert_equal ["one", "step 2", "step 3"], File.readlines(@file).map { |line| JSON.parse(line)["step"] }
  end

  def test_a_full_disk_leaves_the_file_as_it_was
    add("one", { duration_ms: 1.0 })
    size = File.size(@file)
    pid = fork do
      trap("XFSZ", "IGNORE")
      Process.setrlimit(:FSIZE, size + 20)
      add("two", { duration_ms: 1.0 })
    rescue Errno::EFBIG
      exit!(7)
    end
    assert_equal 7, Process.wait2(pid).last.exitstatus
    assert_equal size, File.size(@file)
  end

  def test_names_in_any_locale_are_kept
    add("pr\xC3\xA9load".dup.force_encoding(Encoding::US_ASCII), { duration_ms: 1.0 })
    add("caf\xE9".dup.force_encoding(Encoding::ISO_8859_1), { duration_ms: 1.0 })
    add("caf\xE9", { duration_ms: 1.0 })
    read = "print Castellan::Ledger.new(ARGV[0])"
    ruby = [Gem.ruby, "-w", "-I#{File.join(ROOT, "lib")}", "-rcastellan/ledger"]
    in_c = IO.popen({ "LC_ALL" => "C" }, [*ruby, "-e", read, @file], &:read)
    assert_equal ["préload", "café", "caf\uFFFD"], in_c.force_encoding("UTF-8").scan(/^\| (\S+) +\| .* 1\.00 \|/).flatten
  end

  def test_processes_may_add_steps_at_the_same_time
    pids = 4.times.map do |number|
      fork do
        20.times { |step| add("#{number}.#{step}", { duration_ms: 1.0 }) }
        exit!(0)
      end
    end
    assert(pids.all? { |pid| Process.wait2(pid).last.success? })
    assert_equal 80, File.readlines(@file).size
    assert_includes text, "| 3.19 "
  end

  def test_another_file_is_refused_and_stays_as_it_is
    { "# Notes\n" => "1 is not JSON", "{\"a\":1}\n" => "1 is not a step", "[]\n" => "1 is not a step", "\xFF\n" => "1 is not JSON",
      %({"request":"GET /","step":"a","conditions":"","duration_ms":"<b>"}\n) => "1 is not a step" }.each do |content, said|
      File.binwrite(@file, content)
      error = assert_raises(Castellan::Ledger::Error) { Castellan::Ledger.new(@file) }
      assert_includes error.message, "#{@file}:#{said}"
      assert_equal content.b, File.binread(@file)
    end
  end

  def test_empty_lines_and_a_byte_order_mark_are_left_alone
    add("one", { duration_ms: 1.0 })
    File.write(@file, "\uFEFF#{File.read(@file)}\r\n\n")
    add("two", { duration_ms: 1.0 })
    assert_equal %w[one two], text.scan(/^\| (one|two) /).flatten
  end

  def test_a_figure_that_could_not_be_read_is_refused
    [{ duration_ms: 812r }, { duration_ms: Float::NAN }, { range_ms: 5.0 }].each do |figures|
      error = assert_raises(Castellan::Ledger::Error) { add("x", figures) }
      assert_includes error.message, "figures: must be Integers or finite Floats, got {"
    end
    refute File.exist?(@file)
  end

  def test_an_unnamed_step_counts_those_of_other_processes
    ledgers = Array.new(2) { Castellan::Ledger.new(@file) }
    ledgers.each { |ledger| ledger.add(request: "GET /", step: nil, conditions: "", figures: { duration_ms: 1.0 }) }
    assert_equal ["step 1", "step 2"], ledgers.last.to_s.scan(/^\| (step \d)/).flatten
  end

  def test_a_folder_that_does_not_exist_is_noticed_before_anything_is_measured
    assert_raises(SystemCallError) { Castellan::Ledger.new(File.join(@dir, "none", "ledger.jsonl")) }
  end

  def test_a_folder_or_a_device_is_no_ledger
    [@dir, File::NULL].each do |path|
      assert_includes assert_raises(Castellan::Ledger::Error) { Castellan::Ledger.new(path) }.message, "#{path} is not a file; name one"
    end
  end

  private

  def gzip(text, seconds)
    packed = StringIO.new("".b)
    Zlib::GzipWriter.wrap(packed) { |writer| (writer.mtime = seconds) && writer.write(text) }
    packed.string
  end

  def add(step, figures, conditions: "Ruby 3.4.1", body: nil)
    Castellan::Ledger.new(@file).add(request: "GET /users", step: step, conditions: conditions, figures: figures, body: body)
  end

  def text = Castellan::Ledger.new(@file).to_s
end
