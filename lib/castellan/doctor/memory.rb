# frozen_string_literal: true

require "objspace"

module Castellan
  module Doctor
    # Counts the allocated and retained bytes and objects of a block, with the sums of memory_profiler.
    #
    #   Memory.of { application.call(env) }  # => { allocated_bytes: 35_800_000, retained_objects: 4, … }
    #
    # Makes the block several times slower, so do not measure its duration here. Counts allocations of the
    # whole process. Code that holds objects runs in a fiber, because the GC scans the stack conservatively:
    # objects on the current stack would count as retained. Now and then, one such object still does.
    module Memory
      COLLECTIONS = 4 # run the GC until nothing more is freed, as memory_profiler does
      private_constant :COLLECTIONS

      module_function

      # @return [Hash{Symbol => Integer}] allocated_bytes, retained_objects, retained_bytes
      # @raise what the block raises
      def of(&block)
        disabled = GC.disable # count before a GC; only the block may start one
        traced = traced?
        measure([Fiber.new { block.call && nil }]) # created here, so that the fiber itself is not counted
      ensure
        ObjectSpace.trace_object_allocations_clear unless traced
        GC.enable unless disabled
      end

      # @param fibers [Array<Fiber>] one fiber; it is popped, because an ended fiber still references its
      #   registers
      def measure(fibers)
        collect
        first = GC.count
        ObjectSpace.trace_object_allocations { fibers.pop.resume }
        generations = first..GC.count # several if the block ran the GC
        _, allocated_bytes = count(generations)
        # Frees objects that are not retained. New objects in their slots belong to a later generation.
        ObjectSpace.trace_object_allocations { collect }
        retained_objects, retained_bytes = count(generations)
        { allocated_bytes: allocated_bytes, retained_objects: retained_objects, retained_bytes: retained_bytes }
      end

      # @return [Boolean] whether other code traces allocations, which only a new object reveals
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
