# frozen_string_literal: true

require "timeout"

module Castellan
  module Doctor
    # Shows a step that lasts longer than two seconds, and limits the total time of all steps.
    #
    #   Progress.during($stderr, limit: 120) do |progress|
    #     progress.step = "GET /users: the first request"
    #     progress.within { application.call(env) } || puts("#{progress.reached}: nothing was measured")
    #   end
    #
    # On a terminal it updates one line, which disappears after the step; otherwise it prints a line for each
    # slow step. Its thread allocates a few objects: per second on a terminal, else per slow step.
    class Progress
      SECONDS = 2
      CLEAR = "\r\e[K"
      private_constant :SECONDS, :CLEAR

      # @param err [IO]
      # @param limit [Numeric, nil] seconds from now for all calls of {#within} together; nil for no limit
      # @yieldparam progress [Progress]
      # @return the result of the block
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

      # Runs the block and interrupts it when the time is over. The interruption is an exception, which Rails
      # rescues and answers with 500, so whatever ends after the limit counts as interrupted. The block must not return nil.
      # @return [Object, nil] the result of the block; nil if the time is over
      def within
        return if over?
        return yield unless @ends_ns

        result = Timeout.timeout((@ends_ns - Clock.monotonic_ns).clamp(1_000_000..) / 1e9) { yield }
        result unless over?
      rescue Timeout::Error, Error
        raise unless over?
      end

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
