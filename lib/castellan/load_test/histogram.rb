# frozen_string_literal: true

module Castellan
  module LoadTest
    # Counts durations in buckets of 0.1 %, in bounded memory (like HdrHistogram).
    #
    #   histogram = Histogram.new
    #   histogram.record(1_050_000)
    #   histogram.percentile(95) # => 1_050_000
    #
    # Values below 2,048 have a bucket each; above, each power of two has 1,024. A percentile is the nearest
    # rank (the ceil(p / 100 × n)-th smallest value), rounded up to the end of its bucket: never too low, at
    # most 0.1 % too high. Count, sum, minimum and maximum are exact. Not thread-safe; {#merge} histograms of
    # several threads.
    class Histogram
      BITS = 11
      HALF = 1 << (BITS - 1)
      private_constant :BITS, :HALF

      # @return [Integer] count, sum, minimum and maximum of the values; min and max are nil without values
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
      # @return [self]
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
      # @return [Integer, nil] by nearest rank; nil without values
      # @raise [ArgumentError] for other percentages
      def percentile(percent)
        raise ArgumentError, "percentile: must be above 0 and at most 100, got #{percent}" unless percent.positive? && percent <= 100
        return if @count.zero?

        rank = (percent.rationalize(Rational(1, 1_000_000)) * @count / 100).ceil # 99.9 is inexact
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
