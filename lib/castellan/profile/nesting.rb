# frozen_string_literal: true

module Castellan
  module Profile
    # Sums nested durations by kind, each without the durations inside it. Add inner ones first.
    #
    #   nesting = Nesting.new
    #   nesting.add(:sql, 20, 10)      # from 20 to 30
    #   nesting.add(:render, 0, 100)
    #   nesting.total(:render)         # => 90
    class Nesting
      def initialize
        @totals = Hash.new(0)
        @ended = [] # start and duration, alternating, of those that no later one encloses yet
      end

      # @param kind [Symbol]
      # @param started_ns [Integer]
      # @param duration_ns [Integer]
      def add(kind, started_ns, duration_ns)
        within = @ended.empty? ? 0 : within(started_ns)
        @totals[kind] += duration_ns > within ? duration_ns - within : 0
        @ended << started_ns << duration_ns
      end

      # @return [Integer] nanoseconds
      def total(kind) = @totals[kind]

      private

      # Removes and sums the durations that started after this moment: they lie inside it.
      def within(started_ns)
        sum = 0
        while (size = @ended.size).positive? && @ended[size - 2] >= started_ns
          sum += @ended.pop
          @ended.pop
        end
        sum
      end
    end
  end
end
