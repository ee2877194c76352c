# frozen_string_literal: true

module Castellan
  module Profile
    # Samples the stack with Vernier, on Ruby 3.2 and later; same interface as {StackprofDepth}.
    #
    #   sampling = VernierDepth.new("wall")
    #   sampling.start
    #   sampling.around { work }
    #   sampling.stop     # => a Hash in speedscope's format
    #
    # Vernier samples each thread separately; only the thread that called {#start} is read. A sample records
    # whether the thread ran, slept or waited for the GVL; running samples are the CPU time.
    class VernierDepth
      INTERVAL = 1_000 # microseconds
      ALLOCATIONS = 50
      RAN = 0 # category of a sample; 1 is idle, 2 stalled
      MARK = "around"
      private_constant :INTERVAL, :ALLOCATIONS, :RAN, :MARK

      # @return [String, nil] a note if the gem is missing
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

      # @return [Symbol] the member of {Result} that it fills
      def fills = :flame

      # @return [true]
      def start
        options = @depth == "objects" ? { allocation_interval: ALLOCATIONS } : {}
        @thread = Thread.current.object_id
        @collector = Vernier::Collector.new(:wall, { interval: INTERVAL, **options })
        @collector.start
        true
      end

      # @return [Integer] number of samples
      attr_reader :taken

      # Marker frame: do not rename without MARK.
      # @return what the block returns
      def around = yield

      # @return [Hash] profile in speedscope's format
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
