# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/threads"
require "profile/profile_world"

class ProfileRecorderTest < Minitest::Test
  include ProfileWorld

  Recorder = Castellan::Profile::Recorder

  # What the detector needs for itself is not taken from it by accident.
  def test_it_redefines_nothing_of_a_tally_but_what_it_means_to
    own = Recorder.instance_methods(false) + Recorder.private_instance_methods(false)
    theirs = Castellan::Detect::Tally.instance_methods(false) + Castellan::Detect::Tally.private_instance_methods(false)
    assert_equal %i[enter failure initialize leave listener query strand], (own & theirs).sort
  end

  # What a recording may tell, one after the other: it begins when the last has ended, or before.
  def telling(random, times)
    texts = ["select a from b where c = 1", "select a from b where c = 2", "insert into b (c) values (1), (2)", "begin", "savepoint x",
             "update b set c = 1", "select d from e", "not SQL '", "select a from b where c in (1, 2)", "pragma x"]
    walks = ends_ns = 0
    Array.new(times) do
      started_ns = [ends_ns - random.rand(3) * 20, 0].max
      ends_ns += duration_ns = random.rand(1..30)
      case random.rand(10)
      when 0 then (walks += 1) && [:enter, [String, Array].sample(random: random), %i[one two].sample(random: random)]
      when 1 then walks.positive? ? (walks -= 1) && [:leave] : [:slept]
      when 2 then [:cache, :rails, %i[hit miss].sample(random: random), started_ns, duration_ns]
      when 3 then [:span, %i[render view other].sample(random: random), "index", started_ns, duration_ns]
      else
        text = texts.sample(random: random)
        [:query, text, text == "pragma x" ? "SCHEMA" : "Sequel", started_ns, duration_ns, random.rand(5).zero?,
         [nil, 0, 7].sample(random: random), nil]
      end
    end
  end

  def told(recorder, all)
    all.each do |event, *arguments|
      whom = %i[enter leave query].include?(event) ? recorder.listener : recorder
      whom.public_send(event, *arguments)
    end
    table = Castellan::Profile::QueryRows.new(recorder, [], from_ns: -9).to_table
    { log: recorder.log, queries: table.to_a, totals: recorder.totals, left_out: recorder.left_out, looks: recorder.looks,
      spans: recorder.spans, parts: %i[sql cache render other].map { |kind| recorder.exclusive(kind) }, repeated: recorder.repeated,
      failure: recorder.failure,
      groups: recorder.groups.map { |group| [group.shape.fingerprint, group.owner, group.association, group.count, group.cached] } }
  end

  def test_the_extension_and_ruby_keep_the_same
    needs_native
    20.times do |seed|
      all = telling(Random.new(seed), 300)
      in_c, in_ruby = [true, false].map { |native| told(Recorder.new(native: native, literals: seed.odd?), all) }
      refute_empty in_c[:log]
      in_ruby.each { |name, expected| assert_equal [seed, name, expected], [seed, name, in_c[name]] }
    end
  end

  def test_past_the_most_they_count_the_same
    needs_native
    all = Array.new(Recorder::MOST + 5) { |number| [:query, "select a from b where c = #{number}", nil, number * 2, 1, false, 1, nil] }
    in_c, in_ruby = [true, false].map { |native| told(Recorder.new(native: native), all) }
    assert_equal in_ruby, in_c
    assert_equal [Recorder::MOST * Recorder::FIELDS, 5], [in_c[:log].size, in_c[:left_out]]
  end

  def test_what_is_kept_outlives_collections
    needs_native
    recorder = Recorder.new(literals: true)
    500.times do |number|
      recorder.listener.enter(Class.new, :"walk#{number % 7}")
      recorder.query("select a from b where c = '#{number}'", nil, number, 1, false, number, nil)
      recorder.listener.leave
      GC.start if (number % 100).zero?
    end
    GC.compact if GC.respond_to?(:compact)
    expected = Array.new(500) do |number|
      ["select a from b where c = '#{number}'", "select a from b where c = ?", number, :"walk#{number % 7}"]
    end
    assert_equal expected, recorder.log.each_slice(Recorder::FIELDS).map { |entry| entry.values_at(0, 1, 4, 8) }
  end

  def needs_native = defined?(Castellan::NativeLog) || skip("the C extension is not built")

  def test_it_finds_what_the_detector_finds
    Base.connection_pool.with_connection { careless }
    theirs = Castellan::Detect.watch { careless && 3.times { Book.first } }
    recorder = Recorder.new
    Castellan::Instrument.record(recorder) { careless && 3.times { Book.first } }
    ours = Castellan::Detect::Verdict.new(recorder).findings
    assert_equal theirs.map { |finding| finding.to_h.slice(:kind, :count, :fingerprint, :association) },
                 ours.map { |finding| finding.to_h.slice(:kind, :count, :fingerprint, :association) }
    assert_equal 2, recorder.repeated
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

  def test_a_statement_that_was_seen_costs_no_object
    needs_native
    recorder = Recorder.new
    tell = -> { recorder.query("select a from b where c = 1", "Sequel", 0, 1, false, nil, nil) }
    100.times { tell.call }
    before = GC.stat(:total_allocated_objects)
    1_000.times { tell.call }
    assert_operator GC.stat(:total_allocated_objects) - before, :<=, 50
    assert_equal 1_100, recorder.totals[:queries]
  end

  def test_a_text_that_is_changed_after_it_was_sent_is_told_as_it_was
    [true, false].each do |native|
      sql = +"select a from b"
      recorder = Recorder.new(native: native, literals: true)
      recorder.query(sql, "Sequel", 0, 1, false, nil, nil)
      sql.replace("select c from d")
      recorder.query(sql, "Sequel", 2, 1, false, nil, nil)
      kept = recorder.log.each_slice(Recorder::FIELDS).map { |entry| entry.first(2) }
      assert_equal [["select a from b"] * 2, ["select c from d"] * 2], kept
    end
  end

  def test_what_was_noted_is_counted_in_its_order_when_somebody_asks
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
                 recorder.log.each_slice(Recorder::FIELDS).map { |entry| entry.last(2) }
  end
end
