# frozen_string_literal: true

module Castellan
  module Profile
    # Counts the requests that are under way, so that a profile can say with how many others it shares figures of the process.
    #
    #   traffic.enter
    #   mark = traffic.mark          # when a profile begins
    #   traffic.overlapping(mark)    # => 3 others ran while it did
    #   traffic.leave
    #
    # Two additions a request and no object. CRuby changes threads between statements at the earliest where it checks for interrupts, which
    # `+= 1` on an Integer does not; elsewhere a count may be lost, and a figure in a note be off by one.
    class Traffic
      # @return [Integer]
      attr_reader :running

      def initialize
        @running = @entered = 0
      end

      # A request begins.
      def enter
        @entered += 1
        @running += 1
      end

      # A request has ended.
      def leave
        @running -= 1
      end

      # @return [Integer] what {overlapping} is to be given
      def mark = @entered - @running

      # @param mark [Integer] of the moment when a profile began, by a request that had entered
      # @return [Integer] how many other requests ran since
      def overlapping(mark) = [@entered - mark - 1, 0].max
    end
  end
end
