# frozen_string_literal: true

require "castellan/figures"

module Benchmarks
  # Computes the 95 % confidence interval of the median by resampling.
  #
  #   Interval.of([3, 1, 2, 2])   # => [1.0, 2.5], the same for the same values
  module Interval
    RESAMPLES = 500

    # @param values [Array<Numeric>]
    # @return [Array(Numeric, Numeric)]
    def self.of(values)
      random = Random.new(1)
      medians = Array.new(RESAMPLES) { Castellan::Figures.median(Array.new(values.size) { values[random.rand(values.size)] }) }.sort
      [medians[RESAMPLES / 40], medians[-1 - (RESAMPLES / 40)]]
    end
  end
end
