# frozen_string_literal: true

module Castellan
  module Demo
    # Shows the current step: as a bar on a terminal with tty-progressbar, else as a line per step.
    #
    #   progress = Progress.new($stderr, total: 37)
    #   progress.step("posts: naive") { measure }   # => the result of the block
    class Progress
      # @param out [IO]
      # @param total [Integer] the number of steps
      def initialize(out, total:)
        @out = out
        @total = total
        @done = 0
        @started_ns = Clock.monotonic_ns
        @bar = bar if out.tty?
      end

      # @param title [String]
      def step(title)
        @bar&.advance(0, step: title)
        result = yield
        @done += 1
        @bar ? @bar.advance(1, step: title) : line(title)
        result
      end

      # @return [Float] seconds since the start
      def elapsed
        (Clock.monotonic_ns - @started_ns) / 1e9
      end

      private

      def bar
        require "tty-progressbar"
        TTY::ProgressBar.new("[:bar] :current/:total :elapsed :step", total: @total, width: 24, output: @out, clear: true)
      rescue LoadError
        nil # without the gem, print lines
      end

      def line(title)
        @out.puts format("%3d/%d %5.1f s  %s", @done, @total, elapsed, title)
      end
    end
  end
end
