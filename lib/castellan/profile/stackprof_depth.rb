# frozen_string_literal: true

module Castellan
  module Profile
    # Samples the stack with stackprof, on Rubies before 3.2: where CPU time or wall time goes, or where objects are made.
    #
    #   sampling = StackprofDepth.new("cpu")
    #   sampling.start
    #   sampling.around { work }
    #   sampling.stop     # => a Hash in speedscope's format
    #
    # stackprof samples the process: signals of CPU time and new objects meet every thread. So the work runs below a frame that nothing else
    # has, and a stack without it is somebody else's and left out; what lies outside that frame is cut off. Frames of the application
    # carry the line that ran, so that a flame graph tells two lines of a method apart; others that of their method.
    class StackprofDepth
      MODES = { "cpu" => [:cpu, 1_000, "nanoseconds"], "wall" => [:wall, 1_000, "nanoseconds"], "objects" => [:object, 50, "none"] }.freeze
      MARK = "Castellan::Profile::StackprofDepth#around"
      GARBAGE = "(garbage collection)"
      private_constant :MODES, :MARK, :GARBAGE

      # @return [String, nil] why it cannot be had
      def self.missing
        require "stackprof"
        nil
      rescue LoadError
        "samples need the gem stackprof, which this application does not have: SQL was recorded; add it to the Gemfile"
      end

      # @param depth [String] "cpu", "wall" or "objects"
      def initialize(depth)
        @depth = depth
        @mode, @interval, @unit = MODES.fetch(depth)
        @measured = 0
      end

      # @return [Symbol] what of a {Result} it fills
      def fills = :flame

      # @return [Boolean] whether it could be started: stackprof may be in use by the application
      def start
        StackProf.start(mode: @mode, interval: @interval, raw: true, aggregate: false)
      end

      # @return [Integer] how many samples were taken
      attr_reader :taken

      # The frame below which everything is this profile's.
      # @return what the block returns
      def around
        before = now
        yield
      ensure
        @measured += now - before
      end

      # @return [Hash]
      def stop
        StackProf.stop
        report = StackProf.results || {}
        Speedscope.of(stacks(report), name: @depth, unit: @unit)
      end

      private

      # A clock of the system ticks more seldom than it is asked to, so the samples share the time that was measured; in objects a sample
      # stands for one interval.
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

      # @return [Array<Array>, nil] the frames below the mark, nil where there are none: nothing of this profile, or only the profiler
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
