# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/threads"
require "profile/profile_world"

class ProfileRecorderTest < Minitest::Test
  include ProfileWorld

  Recorder = Castellan::Profile::Recorder

  # The detector keeps what it needs for itself.
  def test_it_overrides_only_the_intended_methods_of_a_tally
    own = Recorder.instance_methods(false) + Recorder.private_instance_methods(false)
    theirs = Castellan::Detect::Tally.instance_methods(false) + Castellan::Detect::Tally.private_instance_methods(false)
    assert_equal %i[initialize query request? strand], (own & theirs).sort
  end

  def test_past_the_most_statements_are_only_counted
    recorder = Recorder.new
    (Recorder::MOST + 5).times { |number| recorder.query("select a from b where c = #{number}", nil, number * 2, 1, false, 1, nil) }
    assert_equal [Recorder::MOST, 5], [recorder.log.size, recorder.left_out]
    assert_equal [Recorder::MOST + 5] * 2, recorder.totals.values_at(:queries, :rows)
  end

  # Within a rendering of 100 ns, in which the first statement runs a block of 50 ns with two statements.
  def test_the_statements_in_a_block_of_another_count_once
    recorder = Recorder.new
    recorder.query("select a from b", nil, 30, 10, false, 1, nil)
    recorder.query("select a from c", nil, 50, 5, false, 1, nil)
    recorder.apart(50)
    recorder.query("select a from d", nil, 20, 20, false, 2, nil)
    recorder.span(:render, "page", 0, 100)
    assert_equal [35, 65], [recorder.exclusive(:sql), recorder.exclusive(:render)]
    recorder.query("select a from b", nil, 130, 10, false, 1, nil)
    recorder.query("select a from d", nil, 120, 40, false, 2, nil)
    assert_equal 75, recorder.exclusive(:sql), "without a block of its own"
  end

  def test_it_has_the_findings_of_the_detector
    Base.connection_pool.with_connection { careless }
    theirs = Castellan::Detect.watch(slow_ms: nil) { careless && 3.times { Book.first } }
    recorder = Recorder.new
    Castellan::Instrument.record(recorder) { careless && 3.times { Book.first } }
    ours = Castellan::Detect::Verdict.new(recorder).findings
    assert_equal theirs.map { |finding| finding.to_h.slice(:kind, :count, :fingerprint, :association) },
                 ours.map { |finding| finding.to_h.slice(:kind, :count, :fingerprint, :association) }
    assert_equal 2, recorder.repeated
  end

  def test_the_detector_uses_the_recorder_of_a_profiled_request
    tallies = 0
    logged = StringIO.new
    detector = Castellan::Detect::Middleware.new(->(env) { [200, {}, [careless && env["PATH_INFO"]]] }, logger: Logger.new(logged),
                                                                                                        environment: "test")
    profiled(detector)
    trace = TracePoint.new(:call) { |point| tallies += 1 if point.method_id == :initialize && point.self.is_a?(Castellan::Detect::Tally) }
    response = trace.enable { get("/books") }
    assert_equal 2, tallies, "the initialize methods of one Recorder and its superclass"
    assert_equal ["n_plus_one"], result.findings.map { |finding| finding[:kind] }
    assert_includes response["castellan-findings"], "n_plus_one"
    assert_includes logged.string, "GET /books"
    2.times { get("/books") }
    assert_equal 3, logged.string.scan("GET /books: 1 finding").size
    assert_equal BOOKS, result.findings.first[:count]
  ensure
    Castellan::Instrument.unsubscribe # the detector stays subscribed
  end

  def test_transactions_are_no_queries_and_a_write_of_many_rows_is_one
    run = Castellan::Profile.run { Base.transaction { Book.insert_all([{ title: "a" }, { title: "b" }]) } }
    assert_equal [1, 1], [run.queries.size, run.totals[:queries]]
    assert_match(/\Ainsert into books/, run.queries.first[:sql])
  end

  def test_statements_of_a_thread_that_is_started_meanwhile_belong_to_it
    run = Castellan::Profile.run { Array.new(3) { Thread.new { Base.connection_pool.with_connection { Book.count } } }.each(&:join) }
    assert_equal [3, 3], [run.queries.size, run.totals[:queries]]
    assert(run.queries.each_cons(2).all? { |one, other| one[:at_ns] <= other[:at_ns] })
  end

  def test_a_text_that_is_changed_after_it_was_sent_is_kept_as_it_was
    sql = +"select a from b"
    recorder = Recorder.new(literals: true)
    recorder.query(sql, "Sequel", 0, 1, false, nil, nil)
    sql.replace("select c from d")
    recorder.query(sql, "Sequel", 2, 1, false, nil, nil)
    kept = recorder.log.map { |statement| [statement.sql, statement.fingerprint] }
    assert_equal [["select a from b"] * 2, ["select c from d"] * 2], kept
  end

  def test_time_within_another_event_is_counted_once
    recorder = Recorder.new
    recorder.query("select a from b", "Sequel", 10, 5, false, 3, nil)
    recorder.cache(:rails, :miss, 8, 20)
    recorder.span(:render, "index", 0, 100)
    assert_equal [5, 15, 80], %i[sql cache render].map { |kind| recorder.exclusive(kind) }
    assert_equal [1, 0, 3], recorder.totals.values
    assert_equal [[[:rails, :miss, 8, 20]], [[:render, "index", 0, 100]]], [recorder.looks, recorder.spans]
  end

  def test_a_walk_inside_a_walk_belongs_to_each
    recorder = Recorder.new
    tell = ->(at_ns) { recorder.query("select a from b", "Sequel", at_ns, 1, false, nil, nil) }
    recorder.enter(String, :outer)
    tell.call(0)
    recorder.enter(Array, :inner)
    tell.call(2)
    recorder.leave
    tell.call(4)
    recorder.leave
    tell.call(6)
    assert_equal [[String, :outer], [Array, :inner], [String, :outer], [nil, nil]],
                 recorder.log.map { |statement| [statement.owner, statement.association] }
  end
end
