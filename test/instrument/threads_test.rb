# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/threads"
require_relative "../detect/sequel_world"

class ThreadInstrumentTest < Minitest::Test
  World = SequelWorld

  # Observes only the thread that opened the recording, because it has no strands.
  class Deaf
    attr_reader :count

    def query(*) = @count = count.to_i + 1
  end

  def test_threads_started_during_a_recording_belong_to_it
    counter = Castellan::Instrument::Counter.new
    Castellan::Instrument.record(counter) do
      [Thread.new { ask }, Thread.start { ask }, Thread.fork { ask }, Class.new(Thread).new { ask }].each(&:join)
    end
    assert_equal 4, counter.queries
  end

  def test_a_thread_of_a_thread_belongs_to_the_recording
    counter = Castellan::Instrument::Counter.new
    Castellan::Instrument.record(counter) { Thread.new { Thread.new { ask }.join }.join }
    assert_equal 1, counter.queries
  end

  def test_arguments_and_value_of_a_thread_are_unchanged
    value = Castellan::Instrument.record(Castellan::Instrument::Counter.new) do
      Thread.new(1, two: 2) { |one, two:| [one, two] }.value
    end
    assert_equal [1, 2], value
    assert_raises(ThreadError) { Castellan::Instrument.record(Castellan::Instrument::Counter.new) { Thread.new } }
  end

  def test_an_observer_without_strands_observes_its_own_thread_only
    deaf = Deaf.new
    Castellan::Instrument.record(deaf) { [ask, Thread.new { ask }.join] }
    assert_equal 1, deaf.count
  end

  def test_concurrent_threads_are_recorded_separately
    names = %i[employee tokens posts]
    findings = Castellan::Detect.watch(slow_ms: nil) do
      users = World::User.all
      names.map { |name| Thread.new { users.each { |user| user.public_send(name) && Thread.pass } } }.each(&:join)
    end
    assert_equal [5], findings.map(&:count).uniq
    assert_equal names.map { |name| "SequelWorld::User##{name}" }.sort, findings.map(&:association).sort
  end

  # Runs each fiber immediately.
  class Scheduler
    def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)
    def block(*) = nil
    def unblock(*) = nil
    def kernel_sleep(*) = nil
    def io_wait(*) = nil
    def close = nil
  end

  def test_fibers_of_a_scheduler_belong_to_the_recording
    counter = Castellan::Instrument::Counter.new
    Thread.new do
      Fiber.set_scheduler(Scheduler.new)
      Fiber.schedule { Castellan::Instrument.record(counter) { Fiber.schedule { ask } } }
      Fiber.schedule { ask }
    end.join
    assert_equal 1, counter.queries
  end

  def test_a_thread_started_earlier_belongs_to_no_recording
    queue = Queue.new
    done = Queue.new
    worker = Thread.new { queue.pop && done.push(ask) }
    counter = Castellan::Instrument::Counter.new
    Castellan::Instrument.record(counter) { queue.push(true) && done.pop }
    assert_equal 0, counter.queries
  ensure
    worker&.join
  end

  private

  def ask = World::DB[:users].first
end
