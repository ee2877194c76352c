# frozen_string_literal: true

require "timeout"

module Castellan
  module Doctor
    # Shows the current step once it has lasted two seconds, and bounds the total time of all steps.
    #
    #   Progress.during($stderr, limit: 120) do |progress|
    #     progress.step = "GET /users: the first request"
    #     progress.within { application.call(env) } || puts("#{progress.reached}: nothing was measured")
    #   end
    #
    # On a terminal it updates one line, which ends with the step; elsewhere it prints one line per slow step.
    # Its thread allocates a few objects per second on a terminal, and per slow step elsewhere.
    class Progress
      SECONDS = 2
      CLEAR = "\r\e[K"
      private_constant :SECONDS, :CLEAR

      # @param err [IO]
      # @param limit [Numeric, nil] seconds from now for all {#within} together; nil: no limit
      # @yieldparam progress [Progress]
      # @return what the block returns
      def self.during(err, limit: nil)
        progress = new(err, limit: limit)
        yield progress
      ensure
        progress&.stop
      end

      # @param err [IO, nil] nil shows nothing
      def initialize(err = nil, limit: nil)
        @err = err
        @terminal = err.respond_to?(:tty?) && err.tty?
        @limit = limit
        @ends_ns = Clock.monotonic_ns + (limit * 1_000_000_000).to_i if limit
        @lock = Mutex.new
        @changed = ConditionVariable.new
        @thread = Thread.new { show } if err
      end

      def step=(text)
        @lock.synchronize do
          clear
          @step, @since_ns, @shown = text, Clock.monotonic_ns, false
          @changed.signal
        end
      end

      # @return [String] "the limit of 120 s was reached (--limit)"
      def reached = "the limit of #{@limit} s was reached (--limit)"

      # Runs the block, and interrupts it when the time is over. Nothing that the block calls can rescue the
      # interruption; `ensure` runs. The block must not return nil.
      # @return [Object, nil] what the block returned; nil if the time is over
      def within
        return if over?
        return yield unless @ends_ns

        Timeout.timeout((@ends_ns - Clock.monotonic_ns).clamp(1_000_000..) / 1e9) { yield }
      rescue Timeout::Error
        raise unless over?
      end

      # Ends the thread.
      def stop
        return unless @thread

        @lock.synchronize { (@stopped = true) && @changed.signal }
        @thread.join
        clear
      end

      private

      def over? = !@ends_ns.nil? && Clock.monotonic_ns >= @ends_ns

      def show
        @lock.synchronize do
          until @stopped
            @changed.wait(@lock, seconds >= SECONDS ? 1 : [SECONDS - seconds, 0.01].max)
            write if !@stopped && @step && seconds >= SECONDS
          end
        end
      end

      def seconds = @since_ns ? (Clock.monotonic_ns - @since_ns) / 1e9 : 0

      def write
        if @terminal
          @err.print "#{CLEAR}castellan doctor: #{@step}, #{seconds.to_i} s"
        elsif !@shown
          @err.puts "castellan doctor: #{@step} …"
        end
        @shown = true
      end

      def clear
        @err.print CLEAR if @shown && @terminal
      end
    end
  end
end
