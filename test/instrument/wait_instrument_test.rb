# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class WaitInstrumentTest < Minitest::Test
  # Counts how often it is told.
  class Watcher
    attr_reader :naps

    def query(*) = nil
    def slept = @naps = naps.to_i + 1
  end

  # As Ruby 3.2 has it, without the waiting.
  class TimedQueue
    def initialize(*given) = @given = given
    def pop(_wait = nil, timeout: nil) = @given.shift || (timeout && nil)
    alias shift pop
    alias deq pop
    prepend Castellan::Instrument::WaitInstrument::Pop
  end

  def test_a_queue_that_had_nothing_to_give_in_its_time_was_waited_for
    assert_nil(naps { TimedQueue.new(7).pop(timeout: 1) })
    assert_nil(naps { [TimedQueue.new.pop, TimedQueue.new.shift(true), TimedQueue.new.deq(timeout: 0)] })
    assert_equal 3, naps { %i[pop shift deq].each { |name| assert_nil TimedQueue.new.public_send(name, timeout: 1e-9) } }
    assert Castellan::Instrument::WaitInstrument.timed?(TimedQueue)
  end

  def test_what_waits_stays_what_it_was
    reader, = IO.pipe
    naps do
      assert_nil IO.select([reader], nil, nil, 0) # rubocop:disable Lint/IncompatibleIoSelectWithFiberScheduler
      assert_raises(ArgumentError) { IO.select }
      thread = Thread.new { 5 }
      assert_same thread, thread.join
      assert_equal [5, 7], [thread.value, Queue.new.push(7).pop]
      assert_raises(ThreadError) { Queue.new.pop(true) }
      assert_raises(RuntimeError) { Thread.new { fail_silently }.join }
      refute_nil ConditionVariable.new.signal
    end
  end

  def test_without_a_recording_nobody_is_told
    Castellan::Instrument.subscribe
    assert_nil Thread.new { Thread.stop }.tap { |thread| assert_nil thread.join(1e-9) }.kill.join&.value
  ensure
    Castellan::Instrument.unsubscribe
  end

  private

  def fail_silently
    Thread.current.report_on_exception = false
    raise "out"
  end

  def naps(&block)
    watcher = Watcher.new
    Castellan::Instrument.record(watcher, &block)
    watcher.naps
  end
end
