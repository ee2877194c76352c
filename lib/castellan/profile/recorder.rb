# frozen_string_literal: true

module Castellan
  module Profile
    # The observer of a profile: the detector's tally, which also keeps each statement with its frames, looks into caches, and renderings.
    #
    #   recorder = Recorder.new
    #   Instrument.record(recorder) { User.all.each(&:employee) }
    #   recorder.exclusive(:sql)   # => 812_000 nanoseconds
    #
    # Past MOST statements only numbers are kept. A mistake in here must not reach the application: it stops the recorder, and {#failure}
    # returns it. Statements of threads that start meanwhile are kept by recorders of their own ({#strand}) and added up; time is that of
    # the recorded thread. One thread records; another may read meanwhile.
    class Recorder < Detect::Tally
      MOST = 2_000
      MOST_SPANS = 500
      FRAMES = 8
      # How many places a statement takes in {#log}: text (nil without literals), fingerprint, start, duration, rows, cached, frames, owner,
      # association.
      FIELDS = 9
      LONG = 2_000
      private_constant :LONG

      # @param literals [Boolean] whether texts are kept with the values in them
      # @param hold_texts [Boolean] false: no text of the application is held, so that what a memory profile counts as retained is its own
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
      # @return [Integer] how many looks and spans are not kept
      attr_reader :looks, :spans, :spans_left_out

      # @return [Recorder] for a thread that is started now
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

      # Called by {Recording#span}. Rails' event of an action's views (:view) has no beginning of its own; see {ViewEvents}.
      def span(kind, name, started_ns, duration_ns)
        return @view_ns += duration_ns if kind == :view

        @nesting.add(kind, started_ns, duration_ns)
        list(@spans, [kind, name, started_ns, duration_ns])
      end

      # @param kind [Symbol] :sql, :render or :cache
      # @return [Integer] nanoseconds of that kind, less what happened within of another
      def exclusive(kind)
        own = @nesting.total(kind)
        kind == :render ? [own, @view_ns - @nesting.total(:cache)].max : own
      end

      # @return [Array] see FIELDS
      def log = @threads.empty? ? @log : [@log, *@threads.map(&:log)].flatten(1)

      # @return [Integer] how many statements are counted and not kept
      def left_out = @threads.sum(@left_out, &:left_out)

      # @return [Hash{Symbol => Integer}] queries, cached queries and rows of all statements that are work of the application:
      #   transactions and what the ORM asks of the schema are not
      def totals
        sums = @threads.map { |strand| strand.totals.values }.push([@queries, @cached_queries, @rows]).transpose.map(&:sum)
        { queries: sums[0], cached_queries: sums[1], rows: sums[2] }
      end

      # @return [Integer] how many statements were sent more than once but for their values
      def repeated = groups.count { |group| group.count > 1 }

      private

      # A statement that writes many rows at once is none for a tally, and one for a profile.
      # @return [String, false] false where the statement is no work of the application
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
