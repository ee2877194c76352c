# frozen_string_literal: true

module Castellan
  module Profile
    # Samples the stack with Vernier, on Ruby 3.2 and later; answers what {StackprofDepth} answers.
    #
    #   sampling = VernierDepth.new("wall")
    #   sampling.start
    #   sampling.around { work }
    #   sampling.stop     # => a Hash in speedscope's format
    #
    # Vernier samples each thread for itself, so only the one that works is looked at. Its samples say whether the thread ran, slept or
    # waited for the lock: those that ran are CPU time.
    class VernierDepth
      INTERVAL = 1_000 # microseconds
      ALLOCATIONS = 50
      RAN = 0 # the category of a sample; 1 is idle, 2 stalled
      MARK = "around"
      private_constant :INTERVAL, :ALLOCATIONS, :RAN, :MARK

      # @return [String, nil] why it cannot be had
      def self.missing
        require "vernier"
        nil
      rescue LoadError
        "samples need the gem vernier, which this application does not have: SQL was recorded; add it to the Gemfile"
      end

      # @param depth [String] "cpu", "wall" or "objects"
      def initialize(depth)
        @depth = depth
      end

      # @return [Symbol] what of a {Result} it fills
      def fills = :flame

      # @return [Boolean] whether it could be started
      def start
        options = @depth == "objects" ? { allocation_interval: ALLOCATIONS } : {}
        @thread = Thread.current.object_id
        @collector = Vernier::Collector.new(:wall, { interval: INTERVAL, **options })
        @collector.start
        true
      end

      # @return [Integer] how many samples were taken
      attr_reader :taken

      # The frame below which everything is this profile's.
      # @return what the block returns
      def around = yield

      # @return [Hash]
      def stop
        result = @collector.stop
        thread = result.threads.fetch(@thread) { {} }
        stacks = @depth == "objects" ? allocated(result, thread) : ran(result, thread)
        @taken = stacks.size
        Speedscope.of(stacks, name: @depth, unit: @depth == "objects" ? "none" : "nanoseconds")
      end

      private

      def ran(result, thread)
        thread.fetch(:samples, []).each_with_index.filter_map do |stack, index|
          next if @depth == "cpu" && thread[:sample_categories][index] != RAN

          weighed(result, stack, thread[:weights][index] * INTERVAL * 1_000)
        end
      end

      def allocated(result, thread)
        made = thread.fetch(:allocations, { samples: [], weights: [] })
        made[:samples].zip(made[:weights]).filter_map { |stack, weight| weighed(result, stack, weight * ALLOCATIONS) }
      end

      def weighed(result, stack, weight)
        frames = result.stack(stack).each_frame.to_a.reverse
        mark = frames.rindex { |frame| frame.filename == __FILE__ && frame.label.end_with?(MARK) } or return
        own = frames.drop(mark + 1).drop_while { |frame| frame.filename.start_with?(__dir__) }
        [own.map { |frame| [frame.label, frame.filename, line(frame)] }, weight]
      end

      def line(frame) = frame.line.to_i.positive? ? frame.line : nil
    end
  end
end
