# frozen_string_literal: true

module Castellan
  module Doctor
    # Allocated and retained bytes and objects of a block, counted by memory_profiler where the application has it. It makes the
    # block many times slower, so it has a run of its own that no duration is taken from. The block runs in a fiber, whose stack is gone
    # when it ends: on a stack that stays, the collector takes what was answered for something that is still held.
    #
    #   Memory.of { application.call(env) }  # => { allocated_bytes: …, allocated: …, retained_bytes: …, retained: … }, or nil
    module Memory
      module_function

      # @return [Boolean]
      def available? = Profile::MemoryDepth.missing.nil?

      # @return [Hash{Symbol => Integer}, nil] nil without memory_profiler
      def of(&block)
        return unless available?

        memory = Profile::MemoryDepth.of { Fiber.new { block.call && nil }.resume }
        { allocated_bytes: memory[:total_allocated_bytes], allocated: memory[:total_allocated],
          retained_bytes: memory[:total_retained_bytes], retained: memory[:total_retained] }
      end
    end
  end
end
