# frozen_string_literal: true

module Castellan
  module Profile
    # Samples CPU time, wall time or allocations with stackprof.
    #
    #   sampling = StackprofDepth.new("cpu")
    #   sampling.start
    #   sampling.around { work }
    #   sampling.stop     # => a Hash in speedscope's format
    #
    # stackprof samples all threads of the process. So the work runs below a marker frame: stacks without the
    # marker belong to other threads and are dropped, and frames outside of the marker are cut off. Frames of
    # the application have the line that ran, so that a flame graph shows the lines of a method; other frames
    # have the first line of their method.
    class StackprofDepth
      MODES = { "cpu" => [:cpu, 1_000, "nanoseconds"], "wall" => [:wall, 1_000, "nanoseconds"], "objects" => [:object, 50, "none"] }.freeze
      MARK = "Castellan::Profile::StackprofDepth#around"
      GARBAGE = "(garbage collection)"
      private_constant :MODES, :MARK, :GARBAGE

      # @return [String, nil] a note if the gem is missing
      def self.missing
        require "stackprof"
        nil
      rescue LoadError
        "samples need the gem stackprof: add it to the Gemfile; only SQL was recorded"
      end

      # @param depth [String] "cpu", "wall" or "objects"
      def initialize(depth)
        @depth = depth
        @mode, @interval, @unit = MODES.fetch(depth)
        @measured = 0
      end

      # @return [Symbol] the member of {Result} that it fills
      def fills = :flame

      # @return [Boolean] false if the application already uses stackprof
      def start = StackProf.start(mode: @mode, interval: @interval, raw: true, aggregate: false)

      # @return [Integer] the number of samples
      attr_reader :taken

      # The marker frame. If you rename this method, change MARK, too.
      # @return the result of the block
      def around
        before = now
        yield
      ensure
        @measured += now - before
      end

      # @return [Hash] the profile in speedscope's format
      def stop
        StackProf.stop
        report = StackProf.results || {}
        Speedscope.of(stacks(report), name: @depth, unit: @unit)
      end

      private

      # System timers fire less often than requested, so the measured time is divided among the samples. For
      # objects, a sample weighs one interval.
      def stacks(report)
        found = own_stacks(report)
        @taken = found.sum(&:last)
        weight = @mode == :object ? @interval : @measured / [@taken, 1].max
        found.map { |stack, times| [stack, times * weight] }
      end

      def own_stacks(report)
        frames, raw, lines = report.values_at(:frames, :raw, :raw_lines)
        found = []
        position = 0
        while position < raw.to_a.size
          size = raw[position]
          stack = own(frames, raw[position + 1, size], lines[position + 1, size])
          found << [stack, raw[position + 1 + size]] if stack
          position += size + 2
        end
        found
      end

      def now
        return 0 if @mode == :object

        @mode == :cpu ? Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) : Clock.monotonic_ns
      end

      # @return [Array<Array>, nil] the frames below the marker; nil for other threads and for the profiler
      def own(frames, ids, lines)
        return [[GARBAGE, nil, nil]] if frames.dig(ids.first, :name) == GARBAGE

        mark = ids.rindex { |id| frames.dig(id, :name) == MARK } or return
        first = (mark + 1...ids.size).find { |index| !frames.dig(ids[index], :file).to_s.start_with?(__dir__) } or return
        (first...ids.size).map { |index| frame(frames.fetch(ids[index]), lines[index]) }
      end

      def frame(known, line)
        file = known[:file]
        ours = file && CallSite.application?(file)
        [known[:name], file, ours && line.to_i.positive? ? line : known[:line]]
      end
    end
  end
end
