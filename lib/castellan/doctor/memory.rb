# frozen_string_literal: true

require "objspace"

module Castellan
  module Doctor
    # Allocated and retained bytes and objects of a block, counted as the gem memory_profiler counts them, but in sum only: which file or
    # class they are of is for a profile to say. It makes the block several times slower, so it has a run of its own that no duration is
    # taken from. What holds objects runs in a fiber, whose stack is gone when it ends: on a stack that stays, the collector takes what was
    # answered for something that is still held.
    #
    #   Memory.of { application.call(env) }  # => { allocated_bytes: 35_800_000, retained_objects: 4, retained_bytes: 200 }
    #
    # Counts what the whole process makes meanwhile.
    module Memory
      COLLECTIONS = 4 # until nothing more is found, as memory_profiler does it
      private_constant :COLLECTIONS

      module_function

      # @return [Hash{Symbol => Integer}]
      # @raise what the block raises
      def of(&block)
        disabled = GC.disable # nothing is collected until the objects are counted, but by work that says so itself
        traced = traced?
        measure([Fiber.new { block.call && nil }]) # made before the counting begins, because it is no part of the work
      ensure
        ObjectSpace.trace_object_allocations_clear unless traced
        GC.enable unless disabled
      end

      # @param fibers [Array<Fiber>] one, held by nobody when it has ended, because it still has what was in the registers
      def measure(fibers)
        collect
        first = GC.count
        ObjectSpace.trace_object_allocations { fibers.pop.resume }
        generations = first..GC.count # several where the work collected, too
        _, allocated_bytes = count(generations)
        ObjectSpace.trace_object_allocations { collect } # what is freed is forgotten, and what takes its place is of another generation
        retained_objects, retained_bytes = count(generations)
        { allocated_bytes: allocated_bytes, retained_objects: retained_objects, retained_bytes: retained_bytes }
      end

      # @return [Boolean] whether somebody else traces allocations, which can be seen by a new object alone
      def traced? = ObjectSpace.allocation_generation(Object.new) == GC.count

      def collect = COLLECTIONS.times { GC.start }

      # @return [Array(Integer, Integer)] objects and bytes
      def count(generations) = Fiber.new { counted(generations) }.resume

      def counted(generations)
        objects = bytes = 0
        ObjectSpace.each_object do |object|
          next unless generations.cover?(ObjectSpace.allocation_generation(object))

          objects += 1
          bytes += ObjectSpace.memsize_of(object)
        end
        [objects, bytes]
      end
      private_class_method :measure, :traced?, :collect, :count, :counted
    end
  end
end
