# frozen_string_literal: true

module Castellan
  # Reads the clocks. Use it everywhere, so that a test can replace the time.
  #
  #   started = Castellan::Clock.monotonic_ns
  #   elapsed_ns = Castellan::Clock.monotonic_ns - started
  module Clock
    module_function

    # @return [Integer] nanoseconds of the monotonic clock
    def monotonic_ns
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # @return [Integer] milliseconds of the wall clock since 1970
    def wall_ms
      Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
    end

    # @return [Time] the wall clock
    def now
      Time.now
    end
  end
end
