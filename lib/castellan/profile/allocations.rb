# frozen_string_literal: true

require_relative "../call_site" # loads the C extension, where there is one

module Castellan
  module Profile
    # Counts the objects that a piece of work makes.
    #
    #   allocations = Allocations.new(thread: true)
    #   allocations.count { work }
    #   allocations.total    # => 5_120
    #   allocations.scope    # => "thread"
    #   allocations.close
    #
    # By thread where asked for and the C extension is built, which costs every thread some 30 ns an object meanwhile; else by the process'
    # own counter (GC.stat), which costs nothing and holds what other threads make at the same time.
    class Allocations
      # @return [Boolean]
      def self.native?
        Castellan.const_defined?(:NativeAllocations) && NativeAllocations.countable?
      end

      # @return [Integer]
      attr_reader :total

      # @param thread [Boolean]
      def initialize(thread:)
        @native = thread && Allocations.native?
        @total = 0
        NativeAllocations.start if @native
      end

      # @return [String] "thread" or "process"
      def scope = @native ? "thread" : "process"

      # @return what the block returns
      def count
        before = now
        yield
      ensure
        @total += now - before
      end

      # Ends the counting by thread. From any thread.
      def close
        NativeAllocations.stop if @native && !@closed
        @closed = true
      end

      private

      def now = @native ? NativeAllocations.count : GC.stat(:total_allocated_objects)
    end
  end
end
