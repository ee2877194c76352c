# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/threads"
require "timeout"

class RecordingTest < Minitest::Test
  Recording = Castellan::Recording

  # Takes what the least observer must.
  class Six
    attr_reader :seen

    def initialize = @seen = []
    def query(sql, _name, _started_ns, _duration_ns, _cached, _rows) = @seen << sql
  end

  # Takes all there is.
  class Everything < Six
    def query(sql, _name, _started_ns, _duration_ns, _cached, _rows, binds = nil) = @seen << [sql, binds]
    def loaded(model, count, _site) = @seen << [model, count]
    def enter(model, association) = @seen << [:enter, model, association]
    def leave = @seen << :leave
  end

  def test_there_is_none_outside_a_block
    assert_nil Recording.current
    Recording.open(Six.new) { refute_nil Recording.current }
    assert_nil Recording.current
  end

  def test_it_returns_what_the_block_returns
    assert_equal 7, Recording.open(Six.new) { 7 }
  end

  def test_every_observer_around_is_told
    inner = Six.new
    outer = Six.new
    Recording.open(outer) do
      Recording.open(inner) { tell("a") }
      tell("b")
    end
    assert_equal ["a"], inner.seen
    assert_equal %w[a b], outer.seen
  end

  def test_an_observer_is_told_what_it_asks_for
    everything = Everything.new
    Recording.open(everything) do
      Recording.open(Six.new) do
        tell("a")
        Recording.current.loaded("User", 2, nil)
        Recording.current.enter(String, :chars)
        Recording.current.leave
      end
    end
    assert_equal [["a", [1]], ["User", 2], [:enter, String, :chars], :leave], everything.seen
  end

  Reflection = Struct.new(:active_record, :name)

  def test_a_walk_is_told_to_whom_it_concerns
    everything = Everything.new
    reflection = Reflection.new(String, :chars)
    assert_nil Recording.walk(reflection)
    Recording.open(Six.new) { assert_nil Recording.walk(reflection) }
    Recording.open(everything) { Recording.walk(reflection).leave }
    Recording.open(everything) { Recording.open(Six.new) { Recording.walk(reflection).leave } }
    assert_equal [[:enter, String, :chars], :leave] * 2, everything.seen
  end

  def test_walks_through_many_associations_are_told_apart
    reflections = Array.new(20) { |number| Reflection.new([String, Symbol][number % 2], :"a#{number}") }
    tally = Castellan::Detect::Tally.new
    Recording.open(tally) do
      (reflections + reflections.reverse).each { |reflection| walk_around(reflection) { tell("SELECT * FROM t") } }
      walk_around(reflections[0]) { walk_around(reflections[1]) { tell("SELECT * FROM t") } }
      tell("SELECT * FROM t")
    end
    counts = reflections.map { |reflection| [reflection.active_record, reflection.name, 2] }
    counts[1][2] = 3
    assert_equal [*counts, [nil, nil, 1]], tally.groups.map { |group| [group.owner, group.association, group.count] }
  end

  def test_a_reflection_is_known_by_itself_and_not_by_where_it_was
    tally = Castellan::Detect::Tally.new
    Recording.open(tally) do
      50.times do |number|
        walk_around(Reflection.new(String, :"a#{number}")) { tell("SELECT * FROM t") }
        GC.start if (number % 10).zero?
      end
    end
    assert_equal Array.new(50) { |number| :"a#{number}" }, tally.groups.map(&:association)
  end

  def test_threads_that_take_turns_have_their_own
    observers = Array.new(3) { Six.new }
    turns = Array.new(3) { Queue.new }
    threads = observers.each_with_index.map do |observer, index|
      Thread.new do
        Recording.open(observer) { 4.times { |time| tell("#{turns[index].pop} #{time}") } }
        [Recording.current, turns[index].pop]
      end
    end
    5.times { turns.each_with_index { |turn, index| turn << index } }
    assert_equal [[nil, 0], [nil, 1], [nil, 2]], threads.map(&:value)
    assert_equal Array.new(3) { |index| Array.new(4) { |time| "#{index} #{time}" } }, observers.map(&:seen)
    assert_nil Recording.current
  end

  def test_it_knows_whether_somebody_wants_loads_and_accesses
    Recording.open(Six.new) { refute Recording.current.watches_loads? || Recording.current.watches_accesses? }
    Recording.open(Everything.new) do
      Recording.open(Six.new) { assert Recording.current.watches_loads? && Recording.current.watches_accesses? }
    end
  end

  def test_it_closes_whatever_happens
    assert_raises(RuntimeError) { Recording.open(Six.new) { raise "out" } }
    catch(:out) { Recording.open(Six.new) { throw :out } }
    assert_nil Recording.current
  end

  def test_the_recording_around_is_current_again_whatever_happens
    Recording.open(Six.new) do
      around = Recording.current
      [-> { raise "out" }, -> { throw :out }, -> { Timeout.timeout(0.01) { Queue.new.pop } }, -> { next }].each do |work|
        ended_by(work)
        assert_same around, Recording.current
      end
      [1].each { Recording.open(Six.new) { break } }
      assert_same around, Recording.current
    end
  end

  def test_fibers_and_enumerators_of_the_thread_belong_to_it
    observer = Six.new
    Recording.open(observer) do
      Fiber.new { tell("fiber") }.resume
      Enumerator.new { |yielder| yielder << tell("enumerator") }.next
    end
    assert_equal %w[fiber enumerator], observer.seen
  end

  def test_fibers_of_a_thread_may_end_in_the_order_in_which_they_began
    first, second = Array.new(2) { Fiber.new { Recording.open(Six.new) { Fiber.yield } } }
    [first, second, first, second].each(&:resume)
    assert_nil Recording.current
    observer = Six.new
    Recording.open(observer) do
      first, second, third = Array.new(3) { Fiber.new { Recording.open(Six.new) { Fiber.yield } } }
      [first, second, third, second, first, third].each(&:resume)
      assert_same observer, Recording.current.observer
    end
    assert_nil Recording.current
  end

  def test_what_ended_before_a_fiber_of_its_does_not_come_back
    fiber = nil
    Recording.open(Six.new) { (fiber = Fiber.new { Recording.open(Six.new) { Fiber.yield } }).resume }
    fiber.resume
    assert_nil Recording.current
  end

  def test_another_thread_has_its_own_until_it_is_handed_over
    observer = Six.new
    Recording.open(observer) do
      recording = Recording.current
      assert_nil Thread.new { Recording.current }.value unless Fiber.respond_to?(:[])
      Thread.new { Recording.resume(recording) { tell("thread") } }.join
    end
    assert_equal ["thread"], observer.seen
  end

  def test_what_a_class_says_it_wants_is_what_its_instances_answer_to
    [Castellan::Detect::Tally, Castellan::Profile::Recorder].each do |type|
      observer = type.new
      assert_equal Recording::Wants.of(observer), observer.wants, type
      assert_equal type.method_defined?(:span), Recording.new(observer, nil).watches_spans?, type
    end
  end

  private

  def ended_by(work)
    catch(:out) { Recording.open(Six.new, &work) }
  rescue RuntimeError => error # a Timeout::Error is one
    error
  end

  def walk_around(reflection)
    walker = Recording.walk(reflection)
    yield
  ensure
    walker.leave
  end

  def tell(sql) = Recording.current.query(sql, nil, 0, 1, false, nil, [1])
end
