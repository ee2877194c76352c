# frozen_string_literal: true

module Castellan
  module Detect
    class Production
      # How values are distributed, in bounded memory: exact up to EXACT, then in steps of 5 %.
      #
      #   distribution = Distribution.new
      #   [5, 5, 120].each { |count| distribution.add(count) }
      #   distribution.percentile(50)   # => 5
      #   distribution.percentile(99)   # => 120, never more than the greatest
      #
      # At most some 600 steps between 1 and 10¹⁵. Not for several threads at once.
      class Distribution
        EXACT = 100
        STEP = Math.log(1.05)
        FIRST = (Math.log(EXACT) / STEP).floor
        private_constant :STEP, :FIRST

        # @return [Integer]
        attr_reader :count, :sum, :max

        def initialize
          @steps = Hash.new(0)
          @count = @sum = @max = 0
        end

        def initialize_copy(other)
          super
          @steps = @steps.dup
        end

        # @param value [Integer] not negative
        def add(value)
          @steps[step(value)] += 1
          @count += 1
          @sum += value
          @max = value if value > @max
        end

        # @param share [Numeric] up to 100
        # @return [Integer] a value that so many percent do not exceed, at most 5 % above the true one; 0 without values
        def percentile(share)
          wanted = (@count * share).fdiv(100).ceil
          step, = @steps.sort.find { |_step, times| (wanted -= times) <= 0 }
          step ? [highest(step), @max].min : 0
        end

        # @return [Hash{Symbol => Integer}]
        def to_h = { p50: percentile(50), p95: percentile(95), p99: percentile(99), max: max }

        private

        def step(value) = value <= EXACT ? value : EXACT + (Math.log(value) / STEP).floor - FIRST + 1

        def highest(step) = step <= EXACT ? step : Math.exp((step - EXACT + FIRST) * STEP).floor
      end
    end
  end
end
