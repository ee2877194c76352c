# frozen_string_literal: true

module Castellan
  module Detect
    # Counts the statements of a group that the query cache answered, by line.
    #
    # An answer sends nothing, but it builds the query and its records again. Its cost is at most that of the
    # code since the previous answer; the cheapest of these intervals counts for all answers.
    class CachedAnswers
      # @return [Integer]
      attr_reader :count
      # @return [Hash{Integer, nil => Integer}] the number of answers per site
      attr_reader :sites

      def initialize
        @count = 0
        @sites = Hash.new(0)
      end

      # @param started_ns [Integer] monotonic
      # @param ns [Integer, nil] nanoseconds since the previous answer
      # @param objects [Integer, nil] objects allocated since then
      # @return [void]
      def add(started_ns, ns, objects)
        @count += 1
        @sites[CallSite.current] += 1
        @started_ns ||= started_ns
        @ended_ns = started_ns
        cheapest(ns, objects) if ns
      end

      # @return [Integer] nanoseconds from the first answer to the last
      def span_ns = @ended_ns - @started_ns

      # @return [Integer] the most nanoseconds that all answers cost
      def total_ns = @ns.to_i * @count

      # @return [Integer] the most objects that they allocated
      def objects = @least.to_i * @count

      # @return [CachedAnswers] these and those of another thread or the same association
      def merge(other) = dup.tap { |answers| answers.take(other) }

      protected

      attr_reader :ns, :least, :started_ns, :ended_ns

      def take(other)
        @count += other.count
        @sites = @sites.merge(other.sites) { |_site, ours, theirs| ours + theirs }
        @started_ns, @ended_ns = [@started_ns, other.started_ns].min, [@ended_ns, other.ended_ns].max
        cheapest(other.ns, other.least) if other.ns
      end

      private

      def cheapest(ns, objects)
        @ns = ns if @ns.nil? || ns < @ns
        @least = objects if @least.nil? || objects < @least
      end
    end
  end
end
