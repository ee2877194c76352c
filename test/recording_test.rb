# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/threads"
require "timeout"

class RecordingTest < Minitest::Test
  Recording = Castellan::Recording

  # Has only the required method.
  class Queries
    attr_reader :seen

    def initialize = @seen = []
    def query(sql, _name, _started_ns, _duration_ns, _cached, _rows, _binds) = @seen << sql
  end

  # Has methods for other events, too.
  class Everything < Queries
    def query(sql, _name, _started_ns, _duration_ns, _cached, _rows, binds) = @seen << [sql, binds]
    def loaded(model, count, _site) = @seen << [model, count]
    def enter(model, association) = @seen << [:enter, model, association]
    def leave = @seen << :leave
  end

  def test_there_is_no_recording_outside_a_block
    assert_nil Recording.current
    Recording.open(Queries.new) { refute_nil Recording.current }
    assert_nil Recording.current
  end

  def test_it_returns_the_result_of_the_block
    assert_equal 7, Recording.open(Queries.new) { 7 }
  end

  def test_each_outer_observer_is_notified
    inner = Queries.new
    outer = Queries.new
    Recording.open(outer) do
      Recording.open(inner) { notify("a") }
      notify("b")
    end
    assert_equal ["a"], inner.seen
    assert_equal %w[a b], outer.seen
  end

  def test_an_observer_is_notified_of_the_events_it_has_methods_for
    everything = Everything.new
    Recording.open(everything) do
      Recording.open(Queries.new) do
        notify("a")
        Recording.current.loaded("User", 2, nil)
        Recording.current.enter(String, :chars)
        Recording.current.leave
      end
    end
    assert_equal [["a", [1]], ["User", 2], [:enter, String, :chars], :leave], everything.seen
  end

  def test_only_observers_with_a_method_are_notified_of_reads
    everything = Everything.new
    assert_equal 7, Recording.read(String, :chars) { 7 }
    Recording.open(Queries.new) { assert_equal 7, Recording.read(String, :chars) { 7 } }
    Recording.open(everything) { Recording.read(String, :chars) { nil } }
    Recording.open(everything) { Recording.open(Queries.new) { Recording.read(String, :chars) { nil } } }
    assert_equal [[:enter, String, :chars], :leave] * 2, everything.seen
  end

  def test_a_read_ends_whatever_happens
    everything = Everything.new
    Recording.open(everything) { catch(:out) { Recording.read(String, :chars) { throw :out } } }
    assert_equal [[:enter, String, :chars], :leave], everything.seen
  end

  def test_reads_of_many_associations_are_counted_separately
    names = Array.new(20) { |number| [[String, Symbol][number % 2], :"a#{number}"] }
    tally = Castellan::Detect::Tally.new
    Recording.open(tally) do
      (names + names.reverse).each { |name| Recording.read(*name) { notify("SELECT * FROM t") } }
      Recording.read(*names[0]) { Recording.read(*names[1]) { notify("SELECT * FROM t") } }
      notify("SELECT * FROM t")
    end
    counts = names.map { |owner, name| [owner, name, 2] }
    counts[1][2] = 3
    assert_equal [*counts, [nil, nil, 1]], tally.groups.map { |group| [group.owner, group.association, group.count] }
  end

  def test_notify_calls_the_method_of_each_observer_that_has_it
    seen = []
    observer = Class.new(Queries) { define_method(:failed) { |*arguments| seen << arguments } }
    Recording.open(observer.new) { Recording.open(Queries.new) { Recording.open(observer.new) { Recording.current.notify(:failed, 1) } } }
    assert_equal [[1], [1]], seen
  end

  def test_threads_have_their_own_recordings
    observers = Array.new(3) { Queries.new }
    turns = Array.new(3) { Queue.new }
    threads = observers.each_with_index.map do |observer, index|
      Thread.new do
        Recording.open(observer) { 4.times { |time| notify("#{turns[index].pop} #{time}") } }
        [Recording.current, turns[index].pop]
      end
    end
    5.times { turns.each_with_index { |turn, index| turn << index } }
    assert_equal [[nil, 0], [nil, 1], [nil, 2]], threads.map(&:value)
    assert_equal Array.new(3) { |index| Array.new(4) { |time| "#{index} #{time}" } }, observers.map(&:seen)
    assert_nil Recording.current
  end

  def test_it_watches_loads_and_reads_if_an_observer_does
    Recording.open(Queries.new) { refute Recording.current.watches_loads? || Recording.current.watches_reads? }
    Recording.open(Everything.new) do
      Recording.open(Queries.new) { assert Recording.current.watches_loads? && Recording.current.watches_reads? }
    end
  end

  def test_it_closes_whatever_happens
    assert_raises(RuntimeError) { Recording.open(Queries.new) { raise "out" } }
    catch(:out) { Recording.open(Queries.new) { throw :out } }
    assert_nil Recording.current
  end

  def test_the_recording_around_is_current_again_whatever_happens
    Recording.open(Queries.new) do
      around = Recording.current
      [-> { raise "out" }, -> { throw :out }, -> { Timeout.timeout(0.01) { Queue.new.pop } }, -> { next }].each do |work|
        ended_by(work)
        assert_same around, Recording.current
      end
      [1].each { Recording.open(Queries.new) { break } }
      assert_same around, Recording.current
    end
  end

  def test_fibers_and_enumerators_of_the_thread_belong_to_it
    observer = Queries.new
    Recording.open(observer) do
      Fiber.new { notify("fiber") }.resume
      Enumerator.new { |yielder| yielder << notify("enumerator") }.next
    end
    assert_equal %w[fiber enumerator], observer.seen
  end

  def test_fibers_of_a_thread_may_end_in_any_order
    first, second = Array.new(2) { Fiber.new { Recording.open(Queries.new) { Fiber.yield } } }
    [first, second, first, second].each(&:resume)
    assert_nil Recording.current
    observer = Queries.new
    Recording.open(observer) do
      first, second, third = Array.new(3) { Fiber.new { Recording.open(Queries.new) { Fiber.yield } } }
      [first, second, third, second, first, third].each(&:resume)
      assert_same observer, Recording.current.observer
    end
    assert_nil Recording.current
  end

  def test_a_recording_does_not_come_back_after_its_end
    fiber = nil
    Recording.open(Queries.new) { (fiber = Fiber.new { Recording.open(Queries.new) { Fiber.yield } }).resume }
    fiber.resume
    assert_nil Recording.current
  end

  def test_another_thread_resumes_a_recording
    observer = Queries.new
    Recording.open(observer) do
      recording = Recording.current
      assert_nil Thread.new { Recording.current }.value unless Fiber.respond_to?(:[])
      Thread.new { Recording.resume(recording) { notify("thread") } }.join
    end
    assert_equal ["thread"], observer.seen
  end

  private

  def ended_by(work)
    catch(:out) { Recording.open(Queries.new, &work) }
  rescue RuntimeError => error # a Timeout::Error is one
    error
  end

  def notify(sql) = Recording.current.query(sql, nil, 0, 1, false, nil, [1])
end
