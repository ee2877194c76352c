# frozen_string_literal: true

require_relative "../support/interval"

module Benchmarks
  module Detect
    # Holds the rounds of a comparison: pairs of times without and with a contender.
    #
    #   sample = Sample.new([[[12_000_000, 12_100_000], [12_100_000, 12_200_000]], …])
    #   sample.mean        # => [12.0, 12.1], ms
    #   sample.share       # => 0.83: the percentage by which the sums of the middle round differ
    #   sample.interval    # => [0.5, 1.2], the range of 95 % of the medians of resampled rounds
    Sample = Struct.new(:rounds) do
      def plain = rounds.flatten(1).map(&:first).sort
      def watched = rounds.flatten(1).map(&:last).sort
      def mean = [plain, watched].map { |times| times.sum / times.size / 1e6 }
      def percentile(share) = [plain, watched].map { |times| times[[(times.size * share / 100.0).ceil, 1].max - 1] / 1e6 }
      def max = percentile(100)
      def share = Castellan::Figures.median(shares)
      def interval = Interval.of(shares)
      def shares = rounds.map { |pairs| (pairs.sum(&:last).fdiv(pairs.sum(&:first)) - 1) * 100 }
    end
  end
end
