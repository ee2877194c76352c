# frozen_string_literal: true

module Castellan
  module Profile
    # Observes a profile: a {Detect::Tally} that also keeps statements, cache lookups and renderings.
    #
    #   recorder = Recorder.new
    #   Instrument.record(recorder) { User.all.each(&:employee) }
    #   recorder.exclusive(:sql)   # => 812_000 nanoseconds
    #
    # After MOST statements only counts are kept. An error stops the recorder and is returned by {#failure};
    # the application does not see it. Threads that start meanwhile get recorders of their own ({#strand}),
    # whose statements are added; times are those of the recorded thread. One thread records; another may read
    # at the same time.
    class Recorder < Detect::Tally
      MOST = 2_000
      MOST_SPANS = 500
      FRAMES = 8
      # Cells per statement in {#log}: text (nil without literals), fingerprint, start, duration, rows,
      # cached, frames, owner, association.
      FIELDS = 9
      LONG = 2_000
      private_constant :LONG

      # @param literals [Boolean] true keeps the SQL with its literal values
      # @param hold_texts [Boolean] false keeps no Strings of the application, so that a memory profile does
      #   not count them as retained
      def initialize(literals: false, hold_texts: true, **options)
        super(**options)
        @literals = literals
        @hold_texts = hold_texts
        @walks = []
        @fingerprints = {}
        @log = []
        @looks = []
        @spans = []
        @threads = []
        @left_out = @spans_left_out = @view_ns = @queries = @cached_queries = @rows = 0
        @nesting = Nesting.new
      end

      # @return [Array<Array>] layer, outcome, start, duration
      # @return [Array<Array>] kind, name, start, duration
      # @return [Integer] number of cache lookups and spans that were not kept
      attr_reader :looks, :spans, :spans_left_out

      # @return [Recorder] for a thread that starts now
      def strand
        return @threads.last if @threads.size >= MOST_STRANDS

        strand = Recorder.new(literals: @literals, hold_texts: @hold_texts, slow_ns: singles.slow_ns, order: @order)
        @strands += [strand]
        @threads << strand
        strand
      end

      # Called by {Recording#query}.
      def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
        return if @failure

        sql = sql.to_s
        super
        @nesting.add(:sql, started_ns, duration_ns)
        fingerprint = fingerprint_of(sql, name) or return

        cached ? @cached_queries += 1 : @queries += 1
        @rows += rows if rows
        return @left_out += 1 if @log.size >= MOST * FIELDS

        @log.push(@literals ? sql.dup : nil, fingerprint, started_ns, duration_ns, rows, cached, CallSite.frames(FRAMES), @walks[-2],
                  @walks[-1])
      rescue StandardError => error
        @failure = error
      end

      # Called by {Recording#enter}.
      def enter(owner, association)
        super
        @walks.push(owner, association)
      end

      # Called by {Recording#leave}.
      def leave
        super
        @walks.pop(2)
      end

      # Called by {Recording#cache}.
      def cache(layer, outcome, started_ns, duration_ns)
        @nesting.add(:cache, started_ns, duration_ns)
        list(@looks, [layer, outcome, started_ns, duration_ns])
      end

      # Called by {Recording#span}. Rails' event for the views of an action (:view) has no start time; see
      # {ViewEvents}.
      def span(kind, name, started_ns, duration_ns)
        return @view_ns += duration_ns if kind == :view

        @nesting.add(kind, started_ns, duration_ns)
        list(@spans, [kind, name, started_ns, duration_ns])
      end

      # @param kind [Symbol] :sql, :render or :cache
      # @return [Integer] nanoseconds of that kind, without nested times of the other kinds
      def exclusive(kind)
        own = @nesting.total(kind)
        kind == :render ? [own, @view_ns - @nesting.total(:cache)].max : own
      end

      # @return [Array] see FIELDS
      def log = @threads.empty? ? @log : [@log, *@threads.map(&:log)].flatten(1)

      # @return [Integer] number of statements that were counted but not kept
      def left_out = @threads.sum(@left_out, &:left_out)

      # @return [Hash{Symbol => Integer}] queries, cached queries and rows of the application's statements,
      #   without transactions and schema queries
      def totals
        sums = @threads.map { |strand| strand.totals.values }.push([@queries, @cached_queries, @rows]).transpose.map(&:sum)
        { queries: sums[0], cached_queries: sums[1], rows: sums[2] }
      end

      # @return [Integer] number of fingerprints that were sent more than once
      def repeated = groups.count { |group| group.count > 1 }

      private

      # The tally ignores bulk writes; a profile does not.
      # @return [String, false] false for statements that are not the application's, such as transactions
      def fingerprint_of(sql, name)
        fingerprint = @fingerprints[sql]
        return fingerprint unless fingerprint.nil?

        fingerprint = Fingerprint.of(sql)
        fingerprint = false unless Detect::Shape.of(fingerprint, name)
        @fingerprints[sql] = fingerprint if @hold_texts && sql.size <= LONG && @fingerprints.size < MOST_TEXTS
        fingerprint
      end

      def list(list, entry)
        list.size < MOST_SPANS ? list << entry : @spans_left_out += 1
      end
    end
  end
end
