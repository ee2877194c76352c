# frozen_string_literal: true

require "test_helper"
require "json"
require "castellan/doctor"

class MemoryTest < Minitest::Test
  Memory = Castellan::Doctor::Memory

  # Runs in its own process, so that no other code allocates objects.
  PROGRAM = <<~'RUBY'
    require "castellan/doctor"
    require "memory_profiler"
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
    counted = Castellan::Doctor::Memory.of(&work)
    p [profiled.total_allocated_memsize, profiled.total_retained, profiled.total_retained_memsize]
    p counted.values_at(:allocated_bytes, :retained_objects, :retained_bytes)
  RUBY

  A_THROWN_AWAY_TEXT = 96 # bytes in Ruby 3.1

  # Either may find one of the 500 texts alive, because its address still stands somewhere on the stack.
  def test_counts_equal_those_of_memory_profiler
    profiled, counted = run_ruby("-e", PROGRAM).lines.map { |line| JSON.parse(line) }
    assert_in_delta profiled.first, counted.first, 1_000
    assert_operator counted.first, :>, 20_000
    assert_in_delta profiled[1], counted[1], 1
    assert_in_delta profiled[2], counted[2], A_THROWN_AWAY_TEXT
    assert_includes 1..2, counted[1]
  end

  def test_work_that_runs_the_garbage_collector_is_counted
    held = []
    counted = Memory.of do
      held << ("held" * 1_000)
      GC.start
      500.times { |number| "a text that is thrown away #{number}" }
      held << ("held" * 1_000)
    end
    assert_operator counted[:allocated_bytes], :>, 25_000
    assert_operator counted[:retained_bytes], :>=, 8_000
  end

  def test_a_disabled_collector_stays_disabled
    GC.disable
    Memory.of { nil }
    assert GC.enable, "it was enabled"
  ensure
    GC.enable
  end

  def test_existing_allocation_tracing_continues
    before = after = nil
    ObjectSpace.trace_object_allocations do
      before = Object.new
      Memory.of { nil }
      after = Object.new
      assert_equal [__FILE__] * 2, [before, after].map { |object| ObjectSpace.allocation_sourcefile(object) }
    end
    Memory.of { nil }
    assert_nil ObjectSpace.allocation_sourcefile(before), "what it has seen itself is forgotten"
  end

  def test_the_collector_works_again_after_work_that_failed
    assert_raises(KeyError) { Memory.of { raise KeyError } }
    refute GC.enable, "it was disabled"
    assert_nil ObjectSpace.allocation_sourcefile(Object.new)
  end
end
