# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class SleepInstrumentTest < Minitest::Test
  # Counts how often it is told.
  class Watcher
    attr_reader :naps

    def query(*) = nil
    def slept = @naps = naps.to_i + 1
  end

  def test_who_records_hears_of_each_sleep
    outer = Watcher.new
    inner = Watcher.new
    Castellan::Instrument.record(outer) do
      sleep(1e-9)
      Castellan::Instrument.record(inner) { Kernel.sleep(1e-9) && sleep(0) }
    end
    assert_equal [2, 1], [outer.naps, inner.naps]
  end

  def test_a_sleep_costs_no_object
    Castellan::Instrument.record(Watcher.new) do
      sleep(0)
      before = GC.stat(:total_allocated_objects)
      100.times { sleep(0) }
      assert_operator GC.stat(:total_allocated_objects) - before, :<, 100
    end
  end

  def test_sleep_stays_what_it_was
    Castellan::Instrument.record(Castellan::Instrument::Counter.new) do
      assert_equal 0, sleep(0)
      assert_raises(ArgumentError) { sleep(-1) }
      assert_raises(ArgumentError) { sleep(0, 0) }
    end
    assert_raises(NoMethodError) { Object.new.sleep(0) }
    assert_equal [0, 0], [sleep(0), Kernel.sleep(0)]
  end
end
