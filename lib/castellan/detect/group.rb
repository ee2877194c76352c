# frozen_string_literal: true

module Castellan
  module Detect
    # The statements of one recording that have one fingerprint and were asked for through one association, counted.
    #
    #   group.count          # => 150 statements that were sent
    #   group.cached         # => 3 more that the query cache answered
    #   group.sites          # => { a site => 150 }
    #
    # Mutable while its recording runs, and only there. Knows when the same values were asked for again, unless the table
    # was written in between, and how long the pauses were.
    class Group
      MOST_DIGESTS = 32
      ALL_SITES = 16
      SOME_SITES = 7

      attr_reader :shape, :owner, :association, :count, :cached, :total_ns, :started_ns, :order, :pause_ns, :again
      # @return [Group, nil] one with the same fingerprint and another association
      attr_accessor :next

      def initialize(shape, owner, association, order)
        @shape = shape
        @owner = owner
        @association = association
        @order = order
        @count = @cached = @total_ns = @pause_ns = @again = 0
        @sites = {}
        @site = nil
        @run = 0
        @digests = {}
        @settled = false
      end

      # @return [Boolean] whether it is this association's (nil and nil: nobody's)
      def through?(owner, association)
        @association == association && @owner.equal?(owner)
      end

      # Counts a statement. What more there is to know is asked of the first ones only, until it is settled.
      # @return [Boolean] whether {#learn} should be told, too
      def add(started_ns, duration_ns)
        @started_ns ||= started_ns
        @pause_ns += started_ns - @ended_ns if @ended_ns
        @count += 1
        @total_ns += duration_ns
        @ended_ns = started_ns + duration_ns
        locate
        !@settled
      end

      # @param digest [Integer] of the values
      # @param written [Integer] how often the table had been written
      def learn(digest, written)
        @again += 1 if @digests[digest] == written
        @digests[digest] = written
        @settled = @digests.size >= MOST_DIGESTS
      end

      # The query cache answered.
      def add_cached
        @cached += 1
      end

      # @return [Hash{Integer, nil => Integer}] how many statements came from each site
      def sites
        @sites.merge(@site => @run) { |_site, before, run| before + run }.select { |_site, count| count.positive? }
      end

      # @return [Integer] from the first to the end of the last
      def span_ns = @ended_ns.to_i - @started_ns.to_i

      # @return [Boolean] whether its first statement began before another group's; by then it need not have ended
      def before?(other) = @started_ns && other.started_ns && @started_ns < other.started_ns

      # @return [Integer] how many different sets of values were asked for, as far as that was looked at
      def different = @digests.size

      # @return [Boolean] whether the same was asked again and again because the answer changes: after writes, or after
      #   pauses that are long for a program that has something to do
      def polling?
        @count > 1 && @digests.size == 1 && (@again.zero? || @pause_ns > (@count - 1) * POLLING_NS)
      end

      POLLING_NS = 5_000_000

      private

      # The site of the first ones is asked for; after that a loop has shown itself, and only every seventh is asked (an
      # odd number, so that two lines that take turns are both met).
      def locate
        move_to(CallSite.current) if @count <= ALL_SITES || (@count % SOME_SITES).zero?
        @run += 1
      end

      def move_to(site)
        return if site == @site

        @sites[@site] = (@sites[@site] || 0) + @run
        @site = site
        @run = 0
      end
    end
  end
end
