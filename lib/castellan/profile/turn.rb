# frozen_string_literal: true

module Castellan
  module Profile
    # One at a time: a profile that samples, or that counts memory, has the whole process to itself, so that two are never mixed.
    #
    #   TURN.take(wait: 2.0)   # => true, or false when another has it for longer
    #   TURN.give
    #
    # May be given back by another thread than took it (a body can be sent elsewhere). A process that is forked meanwhile starts free.
    class Turn
      def initialize
        @lock = Mutex.new
        @free = ConditionVariable.new
        @holder = nil
      end

      # @param wait [Numeric] seconds
      # @return [Boolean] whether it is now the caller's
      def take(wait:)
        deadline = Clock.monotonic_ns + (wait * 1_000_000_000)
        @lock.synchronize do
          while held?
            left = (deadline - Clock.monotonic_ns) / 1e9
            return false unless left.positive?

            @free.wait(@lock, left)
          end
          @holder = Process.pid
        end
        true
      end

      # Ends the caller's turn.
      def give
        @lock.synchronize do
          @holder = nil
          @free.signal
        end
      end

      private

      def held? = @holder == Process.pid
    end
  end
end
