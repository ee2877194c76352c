# frozen_string_literal: true

# Runs the same request with and without rack-mini-profiler in turns, and prints the nanoseconds of each pair
# and the number of recorded queries as JSON. benchmark/profile.rb starts it as a process, because
# rack-mini-profiler hooks into the boot of Rails.
require "json"
require "rails"
require "active_record"
require "rack-mini-profiler"
require_relative "works"

module ProfileBenchmark
  # Measures rack-mini-profiler the way ./../profile.rb measures Castellan.
  module MiniProfiler
    class << self
      def run(count)
        Rack::MiniProfiler.config.storage = Rack::MiniProfiler::MemoryStore
        Rack::MiniProfiler.config.storage_options = {} # otherwise Rails stores files
        @app = Works.boot
        Rack::MiniProfiler.config.authorization_mode = :allow_all # booting in production has set another mode
        10.times { time(true) && time(false) }
        GC.start
        pairs = Array.new(count) { |index| index.even? ? [time(false), time(true)] : [time(true), time(false)].reverse }
        puts JSON.generate(pairs: pairs, **recorded)
      end

      private

      def time(enabled)
        Rack::MiniProfiler.config.enabled = enabled
        started = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
        Works.request(@app)
        Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - started
      end

      def recorded
        Rack::MiniProfiler.config.enabled = true
        id = @app.call(Works.env)[1].fetch("x-miniprofiler-ids").split(",").first
        { queries: statements(Rack::MiniProfiler.config.storage_instance.load(id)[:root]).size }
      end

      def statements(timing)
        timing[:sql_timings] + timing[:children].flat_map { |child| statements(child) }
      end
    end
  end
end

ProfileBenchmark::MiniProfiler.run(Integer(ARGV.fetch(0)))
