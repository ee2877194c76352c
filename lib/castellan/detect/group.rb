# frozen_string_literal: true

module Castellan
  module Detect
    # The statements of one recording that have one fingerprint and were asked for through one association, counted.
    #
    #   group.count          # => 150 statements that were sent
    #   group.cached         # => 3 more that the query cache answered
    #   group.sites          # => { a site => 150 }
    #
    # Mutable while its recording runs, and only there. Records when the same values were asked for again, unless the table
    # was written in between.
    class Group
      MOST_DIGESTS = 32
      ALL_SITES = 16
      STEADY = 5
      SOME_SITES = 7
      MANY = 64
      FEW_SITES = 29
      MOST_FRAMES = 50

      attr_reader :shape, :owner, :association, :count, :cached, :total_ns, :started_ns, :order, :again
      # @return [Integer] how often the same was asked again although no table had been written at all
      attr_reader :quietly
      # @return [Pieces, nil] what changes from statement to statement, where the shape does not say enough
      attr_reader :pieces
      # @return [Array<Integer>, nil] the application's frames at its second statement, see {CallSite.frames}
      attr_reader :stack
      # @return [Group, nil] one with the same fingerprint and another association
      attr_accessor :next

      def initialize(shape, owner, association, order)
        @shape = shape
        @owner = owner
        @association = association
        @order = order
        @count = @cached = @total_ns = @again = @quietly = 0
        @pieces = Pieces.new if association.nil? && shape.pieces?
        @sites = {}
        @site = nil
        @run = 0
        @next_look = 1
        @digests = {}
        @settled = @refused = false
      end

      # @return [Boolean] whether it is this association's (nil and nil: nobody's)
      def through?(owner, association)
        @association == association && @owner.equal?(owner)
      end

      # @return [Boolean] whether the ORM sent them for what was named beforehand (`preload`, `includes`, `eager`)
      def preload? = @owner == Instrument::PRELOAD

      # Counts a statement. What more there is to know is asked of the first ones only, until it is settled.
      # @param refused [Boolean] whether the database did: the next that it does not refuse takes its place, and is not counted again
      # @return [Boolean] whether {#learn} should be told, too
      def add(started_ns, duration_ns, refused)
        @started_ns ||= started_ns
        @total_ns += duration_ns
        @ended_ns = started_ns + duration_ns
        return false if (refused || @refused) && instead?(refused)

        @count += 1
        look if @count == @next_look
        @run += 1
        !@settled
      end

      # @param digest [Integer] of the values
      # @param written [Integer] how often the table had been written
      # @param writes [Integer] how often any had been
      def learn(digest, written, writes)
        return if @settled # by statements that were counted while the values were read

        before = @digests[digest]
        @again += 1 if before && before >> WRITES_BITS == written
        @digests[digest] = now = written << WRITES_BITS | writes
        @quietly += 1 if before == now
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

      # @return [Integer, nil] the site of most statements
      def busiest = sites.max_by { |_site, count| count }&.first

      # @return [Integer] from the first to the end of the last; at least so long where they ran at the same time and were told
      #   of in another order
      def span_ns = (@ended_ns.to_i - @started_ns.to_i).abs

      # @return [Boolean] whether its first statement began before another group's; by then it need not have ended
      def before?(other) = @started_ns && other.started_ns && @started_ns < other.started_ns

      # @return [Boolean] whether its first statement began while another group's were sent
      def between?(other) = other.before?(self) && @started_ns <= other.ended_ns

      # @return [Integer] how many different sets of values were asked for, as far as that was looked at
      def different = @digests.size

      # @return [Boolean] whether the same was asked again and again because the answer changes: each time the table was written
      def polling? = @count > 1 && @digests.size == 1 && @again.zero?

      # Takes in the statements of another group, from another thread or through the same association.
      # @return [Group] a new one
      def merge(other) = dup.tap { |group| group.take(other) }

      WRITES_BITS = 32

      protected

      attr_reader :digests, :ended_ns

      def take(other)
        @count += other.count
        @cached += other.cached
        @total_ns += other.total_ns
        common = (@digests.keys & other.digests.keys).size
        @again += other.again + common
        @quietly += other.quietly + common
        @digests = @digests.merge(other.digests)
        @pieces = @pieces.merge(other.pieces) if @pieces && other.pieces
        @sites = sites.merge(other.sites) { |_site, ours, theirs| ours + theirs }
        @run = 0
        @stack ||= other.stack
        @started_ns, @ended_ns = [[@started_ns, other.started_ns].compact.min, [@ended_ns, other.ended_ns].compact.max]
        @order = [@order, other.order].min
      end

      private

      def instead?(refused)
        instead = @refused && !refused
        @refused = refused
        instead
      end

      # Looks up the site of the first statements. When they all came from one, a loop has shown itself, and only each seventh is looked
      # up, of many each 29th (odd numbers, so that two lines that take turns are both met).
      def look
        move_to(CallSite.current)
        @stack = CallSite.frames(MOST_FRAMES) if @count == 2
        all = @sites.size > 1 ? ALL_SITES : STEADY
        return @next_look += 1 if @count < all

        step = @count < MANY ? SOME_SITES : FEW_SITES
        @next_look = ((@count / step) + 1) * step
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
