# frozen_string_literal: true

module Castellan
  module Doctor
    # Prints the current step every two seconds while it runs.
    #
    #   Progress.during($stderr) do |progress|
    #     progress.step = "GET /users: the first request"
    #     examine
    #   end
    #
    # Its thread allocates a few objects per line.
    class Progress
      SECONDS = 2
      private_constant :SECONDS

      # @param err [IO]
      # @yieldparam progress [Progress]
      # @return what the block returns
      def self.during(err)
        progress = new(err)
        yield progress
      ensure
        progress&.stop
      end

      def initialize(err)
        @err = err
        @lock = Mutex.new
        @changed = ConditionVariable.new
        self.step = "booting the application"
        @thread = Thread.new { run }
      end

      # @param text [String]
      def step=(text)
        @lock.synchronize { @step, @since_ns = text, Clock.monotonic_ns }
      end

      # Ends the thread.
      def stop
        @lock.synchronize { (@stopped = true) && @changed.signal }
        @thread.join
      end

      private

      def run
        @lock.synchronize do
          until @stopped
            @changed.wait(@lock, SECONDS)
            seconds = (Clock.monotonic_ns - @since_ns) / 1_000_000_000
            @err.puts "castellan doctor: #{@step}: #{seconds} s so far" if seconds >= SECONDS && !@stopped
          end
        end
      end
    end
  end
end
