# frozen_string_literal: true

require "test_helper"
require "support/own_databases"
require "sequel"
require "castellan/instrument/threads"

# The text report, of examinations of lambdas and of findings made by hand.
class DiagnosisTest < Minitest::Test
  include Castellan::OwnDatabases

  Doctor = Castellan::Doctor

  # An examination with given values.
  Made = Struct.new(:request, :measurement, :runs, :range_ns, :findings, :left_out, keyword_init: true)

  def test_findings_with_one_fix_are_one_group_and_the_longest_is_first
    report = report_of(finding(fix: "add x", fingerprint: "select a", total_ns: 2_000_000),
                       finding(fix: "add y", fingerprint: "select b", total_ns: 9_000_000),
                       finding(fix: "add x", fingerprint: "select c", total_ns: 3_000_000))
    assert_equal ["1. 150 queries, 9.00 ms: the same query for each record (N+1)",
                  "2. 300 queries, 5.00 ms: the same query for each record (N+1)"], report.lines(chomp: true).grep(/^\d\./)
    assert_equal 1, report.scan("   fix     add x").size
    assert_operator report.index("select c"), :<, report.index("select a")
    assert_includes report, "\nnext: add y"
  end

  def test_numbers_have_separators_and_sql_is_cut
    report = report_of(finding(fingerprint: "select #{"long, " * 50}", fix: "add x"))
    assert_includes report, "duration    7,795 ms (the median of 3 warm runs), of which SQL 373 ms in 1,139 queries"
    assert_includes report, "allocated   744,989 objects, 60.0 MB"
    assert_includes report, "retained    1 object, 120 B"
    assert_includes report, "table rows  users 1,000"
    assert_operator report.lines.map(&:size).max, :<, 140
  end

  def test_answers_of_the_query_cache_and_memory_that_was_not_counted_are_described
    report = Doctor::Diagnosis.new(made(cached_queries: 3, allocated_bytes: nil, retained_objects: nil)).to_s
    assert_includes report, " in 1,139 queries, 3 more answered by the query cache\n"
    assert_includes report, " 744,989 objects; bytes are not counted: that takes too long\n"
    refute_includes report, "retained"
  end

  def test_a_finding_without_a_fix_has_a_reason_and_is_no_next_step
    report = report_of(finding(fix: nil, fix_refused: "it differs"))
    assert_includes report, "fix     none: it differs"
    assert_includes report, "next: no preload removes"
  end

  def test_repetition_that_the_query_cache_answered_has_its_objects
    report = report_of(finding(kind: :cached_repeat, count: 19, objects: 1_900, fix: nil, fix_refused: "keep the result"))
    assert_includes report, "1. 19 queries, at most 1.00 ms and 1,900 objects: answered by the query cache again and again"
  end

  def test_a_slow_statement_that_is_not_repeated_has_its_next_step
    report = report_of(finding(kind: :slow_query, count: 1, fix: nil, fix_refused: "it is slow by itself"))
    assert_includes report, "1. 1 query, 1.00 ms: slow statements"
    assert_includes report, "\nnext: it is slow by itself"
  end

  def test_a_trial_is_below_its_fix_and_decides_the_next_step
    helps = finding(fix: "add x", fingerprint: "select a", total_ns: 1)
    not_so = finding(fix: "add y", fingerprint: "select b", total_ns: 9)
    measured = Castellan::Measurement.new(queries: 1, duration_ns: 1_000_000, sql_ns: 1, allocated_objects: 1, response_bytes: 1)
    slow = Castellan::Measurement.new(**measured.to_h, duration_ns: 2_000_000)
    trials = { helps => Doctor::Trial.new(findings: [helps], before: slow, after: measured, same: true),
               not_so => Doctor::Trial.new(findings: [not_so], before: measured, same: false, reason: "it fails") }
    report = Doctor::Diagnosis.new(made([helps, not_so]), trials: trials)
    assert_match(/fix     add y\n   tried   does not help: it fails\n/, report.to_s)
    assert_match(/fix     add x\n   tried   1 → 1 queries, 2\.00 → 1\.00 ms .*; the same bytes\n/, report.to_s)
    assert_includes report.to_s, "\nnext: add x"
    assert_equal [true, false], report.to_h["findings"].map { |one| one["trial"]["accepted"] }
    assert_includes Doctor::Diagnosis.new(made([not_so]), trials: trials).to_s, "next: nothing worth doing: the changes"
  end

  def test_the_next_step_is_the_fix_that_saves_most_time
    trials = [[9, 8], [9, 3], [9, 9], [9, 12]].to_h do |before, after|
      finding = finding(fix: "fix #{after}", fingerprint: after.to_s, total_ns: 100 - after)
      measured = [before, after].map do |ms|
        Castellan::Measurement.new(queries: ms, duration_ns: ms * 1_000_000, sql_ns: 1, allocated_objects: 1, response_bytes: 1)
      end
      [finding, Doctor::Trial.new(findings: [finding], before: measured[0], after: measured[1], same: true, noise_ns: 500_000)]
    end
    assert_equal "fix 3", Doctor::Diagnosis.new(made(trials.keys), trials: trials).next_step
    useless = trials.select { |finding, _trial| ["fix 9", "fix 12"].include?(finding.fix) }
    assert_includes Doctor::Diagnosis.new(made(useless.keys), trials: useless).next_step, "nothing worth doing"
    noisy = trials.select { |finding, _trial| finding.fix == "fix 8" }
    noisy.transform_values! { |trial| trial.dup.tap { |one| one.noise_ns = 2_000_000 } }
    assert_includes Doctor::Diagnosis.new(made(noisy.keys), trials: noisy).next_step, "nothing worth doing"
  end

  def test_a_fix_that_is_faster_in_another_order_is_a_next_step
    finding = finding(fix: "fix it")
    before, after = [9, 3].map do |ms|
      Castellan::Measurement.new(queries: ms, duration_ns: ms * 1_000_000, sql_ns: 1, allocated_objects: 1, response_bytes: 1)
    end
    trial = Doctor::Trial.new(findings: [finding], before: before, after: after, same: false, reason: "it differs", reordered: true)
    assert_includes Doctor::Diagnosis.new(made([finding]), trials: { finding => trial }).to_s,
                    "\nnext: fix it; its rows then come in another order: where that matters, order the association"
    [{ before: after, after: before }, { noise_ns: 7_000_000 }].each do |worse|
      other = Doctor::Trial.new(**trial.each_pair.to_h, **worse)
      assert_includes Doctor::Diagnosis.new(made([finding]), trials: { finding => other }).next_step, "nothing worth doing"
    end
  end

  # Each trial measures the work without the fix again. Here the machine was busy during the trial of one fix.
  def test_the_next_step_is_what_saves_most_of_its_own_measurement
    one, other = Array.new(2) { |index| finding(fix: "fix #{index}", fingerprint: "select #{index}", total_ns: 9 - index) }
    measured = lambda do |milliseconds|
      Castellan::Measurement.new(queries: 9, duration_ns: milliseconds * 1_000_000, sql_ns: 1, allocated_objects: 1, response_bytes: 1)
    end
    trial = lambda do |findings, before, after|
      Doctor::Trial.new(findings: findings, before: measured.call(before), after: measured.call(after), same: true)
    end
    trials = { one => trial.call([one], 1_350, 437), other => trial.call([other], 1_465, 925),
               together: trial.call([one, other], 924, 179) }
    assert_includes Doctor::Diagnosis.new(made([one, other]), trials: trials).to_s, "\nnext: all of these together: fix 0; and fix 1"
  end

  def test_all_fixes_together_are_the_next_step_where_they_save_more_than_one
    one, other = Array.new(2) { |number| finding(fix: "fix #{number}", fingerprint: number.to_s) }
    trial = lambda do |findings, after|
      measured = [9, after].map do |ms|
        Castellan::Measurement.new(queries: ms, duration_ns: ms * 1_000_000, sql_ns: 1, allocated_objects: 1, response_bytes: 1)
      end
      Doctor::Trial.new(findings: findings, before: measured[0], after: measured[1], same: true)
    end
    trials = { one => trial.call([one], 5), other => trial.call([other], 6), together: trial.call([one, other], 2) }
    report = Doctor::Diagnosis.new(made([one, other]), trials: trials)
    assert_includes report.to_s, "\n1 and 2 together: 9 → 2 queries"
    assert_includes report.to_s, "\nnext: all of these together: fix 0; and fix 1"
    assert_equal 2, report.to_h["together"]["after"]["queries"]
  end

  def test_the_next_step_depends_on_the_slowest_part
    assert_includes next_step(sql_ns: 90_000_000, duration_ns: 100_000_000), "EXPLAIN ANALYZE"
    assert_includes next_step(sql_ns: 1, allocated_objects: 50_000), "with a Castellan::Resource"
    assert_includes next_step(sql_ns: 0, queries: 0, allocated_objects: 50_000), "no query is sent, and 50,000 objects are allocated"
    assert_includes next_step(sql_ns: 1, allocated_objects: 500, duration_ns: 90_000_000), "?profile=wall"
    assert_includes next_step(sql_ns: 1, allocated_objects: 500, duration_ns: 2_000_000), "nothing stands out"
  end

  def test_the_first_request_is_discarded_and_the_median_is_reported
    bodies = %w[first] + Array.new(20, "later")
    examination = Doctor::Examination.new(->(_env) { [200, {}, [bodies.shift]] }, request, runs: 3, memory: false).call
    assert_equal [3, 5, "first"], [examination.runs, examination.measurement.response_bytes, examination.body]
  end

  def test_tables_that_are_read_in_another_thread_are_named
    database = Sequel.sqlite
    database.create_table(:letters) { primary_key :id }
    application = ->(_env) { [200, {}, [Thread.new { database[:letters].count.to_s }.value]] }
    assert_equal %w[letters], Doctor::Examination.new(application, request, runs: 1, memory: false).call.tables
  end

  def test_a_database_in_memory_is_named
    { Sequel.sqlite => "sqlite (in memory), Sequel",
      Sequel.connect("sqlite://a/b.sqlite3", test: false) => "sqlite (a/b.sqlite3), Sequel" }.each do |database, said|
      assert_equal said, Doctor::Sandbox::SequelDatabase.new(database).to_s
    end
  end

  def test_a_reached_limit_is_reported_with_what_it_skipped
    report = Doctor::Diagnosis.new(made([], left_out: "counting memory"), reached: "the limit of 5 s was reached (--limit)")
    assert_includes report.to_s, "  INCOMPLETE: the limit of 5 s was reached (--limit); left out: counting memory and what follows it\n"
    assert_equal "counting memory", report.to_h["left_out"]
    refute_includes report_of, "INCOMPLETE"
  end

  private

  def request = Doctor::RackRequest.new("/users")

  def finding(**fields)
    usual = { kind: :n_plus_one, count: 150, fingerprint: "select 1", location: "app/a.rb:1", parent_location: "app/b.rb:2",
              parent_count: 150, total_ns: 1_000_000, source: "user.name" }
    Castellan::Finding.new(**usual, **fields)
  end

  def made(findings = [], left_out: nil, **measured)
    measurement = Castellan::Measurement.new(duration_ns: 7_795_400_000, sql_ns: 373_000_000, queries: 1_139, cached_queries: 0,
                                             allocated_objects: 744_989, allocated_bytes: 60_000_000, retained_objects: 1,
                                             retained_bytes: 120, response_bytes: 1_000, status: 200, **measured)
    Made.new(request: request, measurement: measurement, runs: 3, range_ns: [], findings: findings, left_out: left_out)
  end

  def report_of(*findings) = Doctor::Diagnosis.new(made(findings), rows: { "users" => 1000 }).to_s
  def next_step(**measured) = Doctor::Diagnosis.new(made(**measured)).next_step
end
