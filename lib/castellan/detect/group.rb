# frozen_string_literal: true

module Castellan
  module Detect
    # Counts the statements of one recording that share a fingerprint and an association.
    #
    #   group.count          # => 150 sent statements
    #   group.cached         # => 3 more, answered by the query cache
    #   group.sites          # => { site => 150 }
    #
    # Mutable during the recording. Identical queries with a write to the table in between do not count as
    # repeats.
    class Group
      MOST_DIGESTS = 32
      MOST_FRAMES = 50
      WRITES_BITS = 32

      # - `again`: how many identical queries repeat without a write to the table in between;
      #   `unchanged_repeats`: without any write in between
      # - `pieces`: the values that change between statements ({Pieces}); nil if the shape does not need them
      # - `stack`: the application frames of the second statement, see {CallSite.frames}
      # - `answers`: a group of the statements that the query cache answered, or nil
      attr_reader :shape, :owner, :association, :order, :count, :started_ns, :again, :unchanged_repeats, :pieces, :stack,
                  :answers

      def initialize(shape, owner, association, order)
        @shape = shape
        @owner = owner
        @association = association
        @order = order
        @count = @total_ns = @again = @unchanged_repeats = @moved_at = 0
        @pieces = Pieces.new if association.nil? && shape.pieces?
        @sites = {}
        @site = @started_ns = @ended_ns = @least_ns = @least_objects = nil
        @next_look = 1
        @digests = {}
        @settled = @refused = @rejected = @several = false
      end

      # Whether the group belongs to this association; nil and nil stand for no association.
      def through?(owner, association) = @association == association && @owner.equal?(owner)

      # Whether the ORM sent these statements for `preload`, `includes` or `eager`.
      def preload? = @owner == Instrument::PRELOAD

      # Notes that a LIMIT of Sequel, which its shape does not show, allows several rows.
      def several!
        @several = true
      end

      def several? = @several

      # Whether the database rejected one of the statements.
      def rejected? = @rejected

      # Counts a statement. Once enough different values were seen, the values are no longer compared.
      # @param started_ns [Integer] monotonic
      # @param refused [Boolean] whether the database rejected it; the next accepted statement replaces it
      # @return [Boolean] whether to call {#learn} with the values
      def add(started_ns, duration_ns, refused)
        @started_ns ||= started_ns
        @total_ns += duration_ns
        @ended_ns = started_ns + duration_ns
        if refused || @refused
          @rejected = true
          replaces = @refused && !refused
          @refused = refused
          return false if replaces
        end

        @count += 1
        look if @count == @next_look
        !@settled
      end

      # @param digest [Integer] a digest of the values
      # @param written [Integer] the number of writes to the table so far
      # @param writes [Integer] the number of all writes so far
      def learn(digest, written, writes)
        return if @settled # {#add} is called first, so another statement may have settled it

        before = @digests[digest]
        @again += 1 if before && before >> WRITES_BITS == written
        @digests[digest] = now = written << WRITES_BITS | writes
        @unchanged_repeats += 1 if before == now
        @settled = @digests.size >= MOST_DIGESTS
      end

      # Counts a statement that the query cache answered. It sends no query, but it builds the query and its
      # records again. Its cost is at most the cost of the code since the previous answer, so the cheapest of
      # these intervals counts for all answers.
      # @param ns [Integer, nil] nanoseconds since the previous answer
      # @param objects [Integer, nil] objects allocated since the previous answer
      def answered(started_ns, ns, objects)
        @answers ||= Group.new(@shape, @owner, @association, @order)
        @answers.add(started_ns, 0, false)
        @answers.cheapest(ns, objects) if ns
      end

      # For answers of the query cache this is an upper limit.
      def total_ns = @least_ns ? @least_ns * @count : @total_ns
      def objects = @least_objects && (@least_objects * @count)

      def cached = @answers ? @answers.count : 0

      # @return [Hash{Integer, nil => Integer}] the number of statements per site
      def sites
        @sites.merge(@site => @count - @moved_at) { |_site, before, run| before + run }.select { |_site, count| count.positive? }
      end

      # @return [Integer, nil] the site with the most statements
      def busiest = sites.max_by { |_site, count| count }&.first

      # @return [Integer] nanoseconds from the first statement to the last; less if reported out of order
      def span_ns = (@ended_ns.to_i - @started_ns.to_i).abs

      def before?(other) = @started_ns && other.started_ns && @started_ns < other.started_ns

      # The number of different sets of values among the compared statements.
      def different = @digests.size

      # Whether identical queries repeat because the table is written in between.
      def polling? = @count > 1 && @digests.size == 1 && @again.zero?

      # @param other [Group] a group of another thread, or of the same association
      # @return [Group] a new group with the statements of both
      def merge(other) = dup.tap { |group| group.take(other) }

      protected

      attr_reader :digests, :ended_ns, :least_ns, :least_objects

      def cheapest(ns, objects)
        @least_ns = ns if @least_ns.nil? || ns < @least_ns
        @least_objects = objects if @least_objects.nil? || objects < @least_objects
      end

      def take(other)
        sites = sites().merge(other.sites) { |_site, ours, theirs| ours + theirs }
        @count += other.count
        @sites = sites
        @moved_at = @count
        @answers = @answers && other.answers ? @answers.merge(other.answers) : @answers || other.answers
        @total_ns += other.total_ns
        cheapest(other.least_ns, other.least_objects) if other.least_ns
        common = (@digests.keys & other.digests.keys).size
        @again += other.again + common
        @unchanged_repeats += other.unchanged_repeats + common
        @digests = @digests.merge(other.digests)
        @pieces = @pieces.merge(other.pieces) if @pieces && other.pieces
        @stack ||= other.stack
        @several ||= other.several?
        @rejected ||= other.rejected?
        @started_ns, @ended_ns = [[@started_ns, other.started_ns].compact.min, [@ended_ns, other.ended_ns].compact.max]
        @order = [@order, other.order].min
      end

      private

      # Looking up the call site is slow, so this does it for the first 5 statements (16 if their sites
      # differ), then for every 7th, and after 64 for every 29th. Odd steps see both of two alternating lines.
      def look
        move_to(CallSite.current)
        @stack = CallSite.frames(MOST_FRAMES) if @count == 2
        return @next_look += 1 if @count < (@sites.size > 1 ? 16 : 5)

        step = @count < 64 ? 7 : 29
        @next_look = ((@count / step) + 1) * step
      end

      # The statements before this one belong to the previous site.
      def move_to(site)
        return if site == @site

        @sites[@site] = (@sites[@site] || 0) + @count - 1 - @moved_at
        @moved_at = @count - 1
        @site = site
      end
    end
  end
end
