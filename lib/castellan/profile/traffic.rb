# frozen_string_literal: true

module Castellan
  module Profile
    # Counts running requests, because they share the process-wide figures of a profile.
    #
    #   traffic.enter
    #   mark = traffic.mark          # at the start of a profile
    #   traffic.overlapping(mark)    # => 3: as many other requests ran since
    #   traffic.leave
    #
    # Two additions per request, no lock and no allocation. CRuby switches threads only where it checks for
    # interrupts, and `+= 1` on an Integer does not; on other Rubies a count may be off by one.
    class Traffic
      # @return [Integer]
      attr_reader :running

      def initialize
        @running = @entered = 0
      end

      def enter
        @entered += 1
        @running += 1
      end

      def leave
        @running -= 1
      end

      # @return [Integer] argument for {overlapping}
      def mark = @entered - @running

      # @param mark [Integer] from {mark}, taken when the profile began in a request that had entered
      # @return [Integer] number of other requests that ran since
      def overlapping(mark) = [@entered - mark - 1, 0].max
    end
  end
end
