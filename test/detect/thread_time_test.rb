# frozen_string_literal: true

require "test_helper"
require "castellan/detect"

class ThreadTimeTest < Minitest::Test
  def test_work_is_taken_time
    taken, passed = times { 500_000.times { |number| number.to_s } }
    assert_operator taken * 2, :>, passed
  end

  def test_waiting_is_not
    taken, passed = times { sleep(0.05) }
    assert_operator passed - taken, :>=, 45_000_000
  end

  private

  def times
    taken = Castellan::Detect::ThreadTime.taken_ns
    started = Castellan::Clock.monotonic_ns
    yield
    [Castellan::Detect::ThreadTime.taken_ns - taken, Castellan::Clock.monotonic_ns - started]
  end
end
