# frozen_string_literal: true

require "test_helper"
require "castellan/doctor"
require "memory_profiler"

class MemoryTest < Minitest::Test
  Memory = Castellan::Doctor::Memory

  def test_it_counts_what_memory_profiler_counts
    held = []
    work = lambda do
      held.clear
      500.times { |number| "a text that is thrown away #{number}" }
      held << "held" * 1_000
      "the answer" * 2_000
    end
    work.call
    fiber = Fiber.new { work.call && nil }
    profiled = MemoryProfiler.report { fiber.resume }
    counted = Memory.of(&work)
    assert_in_delta profiled.total_allocated_memsize, counted[:allocated_bytes], 1_000
    assert_operator counted[:allocated_bytes], :>, 20_000
    assert_equal [1, profiled.total_retained_memsize], counted.values_at(:retained_objects, :retained_bytes)
  end

  def test_the_collector_works_again_after_work_that_failed
    assert_raises(KeyError) { Memory.of { raise KeyError } }
    refute GC.enable, "it was disabled"
    assert_nil ObjectSpace.allocation_sourcefile(Object.new)
  end
end
