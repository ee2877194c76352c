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
        fibers = [Fiber.new { block.call && nil }] # made before the counting begins, because it is no part of the work
        generation = start
        fibers.pop.resume # and held by nobody afterwards: a fiber that has ended still has what was in the registers
        ObjectSpace.trace_object_allocations_stop
        _, allocated_bytes = count(generation)
        ObjectSpace.trace_object_allocations_start # what is freed is forgotten, and what takes its place is of another generation
        GC.enable
        collect
        retained_objects, retained_bytes = count(generation)
        { allocated_bytes: allocated_bytes, retained_objects: retained_objects, retained_bytes: retained_bytes }
      ensure
        ObjectSpace.trace_object_allocations_stop
        ObjectSpace.trace_object_allocations_clear
        GC.enable
      end

      # Nothing is collected until the objects are counted, so that what is made belongs to one generation.
      def start
        collect
        GC.disable
        ObjectSpace.trace_object_allocations_start
        GC.count
      end

      def collect = COLLECTIONS.times { GC.start }

      # @return [Array(Integer, Integer)] objects and bytes
      def count(generation) = Fiber.new { counted(generation) }.resume

      def counted(generation)
        objects = bytes = 0
        ObjectSpace.each_object do |object|
          next unless ObjectSpace.allocation_generation(object) == generation

          objects += 1
          bytes += ObjectSpace.memsize_of(object)
        end
        [objects, bytes]
      end
      private_class_method :start, :collect, :count, :counted
    end
  end
end
