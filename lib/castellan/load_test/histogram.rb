# frozen_string_literal: true

module Castellan
  module LoadTest
    # Counts durations in buckets 0.1 % wide, so that any number of them fits into bounded memory (as HdrHistogram does).
    #
    #   histogram = Histogram.new
    #   histogram.record(1_050_000)
    #   histogram.percentile(95) # => 1_050_000
    #
    # Below 2,048 every value has a bucket of its own; above, each power of two is divided into 1,024. Percentiles are by
    # nearest rank (the ceil(p / 100 × n)-th smallest value), told as the highest value of their bucket, so never too low
    # and at most 0.1 % too high. Count, sum, smallest and largest are exact. One thread writes; {#merge} afterwards.
    class Histogram
      BITS = 11
      HALF = 1 << (BITS - 1)
      private_constant :BITS, :HALF

      # @return [Integer] how many values, their sum, the smallest and the largest (nil when there is none)
      attr_reader :count, :sum, :min, :max

      def initialize
        @buckets = Hash.new(0)
        @count = 0
        @sum = 0
        @min = @max = nil
      end

      # @param value [Integer] nanoseconds, 0 or more
      def record(value)
        @buckets[index(value)] += 1
        @count += 1
        @sum += value
        @min = value if @min.nil? || value < @min
        @max = value if @max.nil? || value > @max
        self
      end

      # @param other [Histogram] added to this one
      def merge(other)
        other.buckets.each { |index, times| @buckets[index] += times }
        @count += other.count
        @sum += other.sum
        @min = [@min, other.min].compact.min
        @max = [@max, other.max].compact.max
        self
      end

      # @return [Float, nil]
      def mean
        @sum.fdiv(@count) unless @count.zero?
      end

      # @param percent [Numeric] above 0, at most 100
      # @return [Integer, nil] by nearest rank
      def percentile(percent)
        raise ArgumentError, "percentile: must be above 0 and at most 100, got #{percent}" unless percent.positive? && percent <= 100
        return if @count.zero?

        rank = (percent.rationalize(Rational(1, 1_000_000)) * @count / 100).ceil # 99.9 as a Float is a little more than 99.9
        bucket, = @buckets.sort.find { |_, times| (rank -= times) <= 0 }
        highest(bucket).clamp(@min, @max)
      end

      protected

      attr_reader :buckets

      private

      def index(value)
        shift = value.bit_length - BITS
        shift.positive? ? (shift * HALF) + (value >> shift) : value
      end

      def highest(index)
        return index if index < 2 * HALF

        shift = (index / HALF) - 1
        ((index - (shift * HALF) + 1) << shift) - 1
      end
    end
  end
end
