# frozen_string_literal: true

module Castellan
  module Profile
    # Counts running requests, because they share the process-wide figures of a profile.
    #
    #   mark = traffic.mark                                  # in a request: traffic.during { … }
    #   traffic.overlapping(mark)                            # => 3 other requests ran since
    #
    # Needs no lock: CRuby switches threads only where it checks for interrupts, and `+= 1` on an Integer does
    # not check.
    class Traffic
      def initialize
        @running = @entered = 0
      end

      # Counts the block as a request.
      # @return the result of the block
      def during
        @entered += 1
        @running += 1
        yield
      ensure
        @running -= 1
      end

      # @return [Integer] an argument for {#overlapping}
      def mark = @entered - @running

      # @param mark [Integer] a result of {#mark}; call both within a request
      # @return [Integer] the number of other requests that ran since
      def overlapping(mark) = [@entered - mark - 1, 0].max
    end
  end
end
