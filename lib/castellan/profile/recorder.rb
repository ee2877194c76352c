# frozen_string_literal: true

module Castellan
  module Profile
    # The observer of a profile: a tally, as the detector has it, that keeps every statement with its frames besides, looks into caches,
    # and what was rendered.
    #
    #   recorder = Recorder.new
    #   Instrument.record(recorder) { User.all.each(&:employee) }
    #   recorder.exclusive(:sql)   # => 812_000 nanoseconds
    #
    # A statement costs an array of frames and a few places in a flat array, no object of its own; hashes and texts are made by {QueryRows}
    # when the work is over. No text of the application's is held, so that what is counted as retained is the application's. Past MOST
    # statements only numbers are kept. A mistake in here must not reach the application: it stops the recorder, and {#failure} says so.
    # Statements of threads that are started meanwhile are kept by recorders of their own ({#strand}) and added up; time is that of
    # the thread that was recorded.
    class Recorder < Detect::Tally
      MOST = 2_000
      MOST_SPANS = 500
      FRAMES = 8
      # How many places a statement takes in {#log}: text (nil without literals), fingerprint, start, duration, rows, cached, frames, owner,
      # association.
      FIELDS = 9

      # @return [Array<Array>] layer, outcome, start, duration
      attr_reader :looks
      # @return [Array<Array>] kind, name, start, duration
      attr_reader :spans
      # @return [Integer] how many looks and spans are not kept
      attr_reader :spans_left_out
      # @return [StandardError, nil]
      attr_reader :failure

      # @param literals [Boolean] whether texts are kept with the values in them
      def initialize(literals: false, **options)
        super(**options)
        @literals = literals
        @log = []
        @looks = []
        @spans = []
        @threads = []
        @left_out = @spans_left_out = @view_ns = @queries = @cached_queries = @rows = 0
        @nesting = Nesting.new
      end

      # @return [Recorder] for a thread that is started now
      def strand
        return @threads.last if @threads.size >= MOST_STRANDS

        Recorder.new(literals: @literals, slow_ns: @singles.slow_ns, order: @order).tap { |strand| @threads << @strands.push(strand).last }
      end

      # Told by {Recording#query}.
      def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
        return if @failure

        super
        @nesting.add(:sql, started_ns, duration_ns)
        fingerprint = @text ? @text.shape.fingerprint : counted(sql, name)
        write_down(sql, fingerprint, started_ns, duration_ns, cached, rows) if fingerprint
      rescue StandardError => error
        @failure = error
      end

      # Told by {Recording#cache}.
      def cache(layer, outcome, started_ns, duration_ns)
        @nesting.add(:cache, started_ns, duration_ns)
        list(@looks, [layer, outcome, started_ns, duration_ns])
      end

      # Told by {Recording#span}. What Rails says of an action's views (:view) has no beginning of its own; see {ViewEvents}.
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
      # @return [String, nil]
      def counted(sql, name)
        fingerprint = Fingerprint.of(sql)
        fingerprint if Detect::Shape.of(fingerprint, name)
      end

      def write_down(sql, fingerprint, started_ns, duration_ns, cached, rows)
        cached ? @cached_queries += 1 : @queries += 1
        @rows += rows if rows
        return @left_out += 1 if @log.size >= MOST * FIELDS

        frames = CallSite.frames(FRAMES) # before the first place is taken: what fails must not leave half a statement
        @log << (@literals ? sql : nil) << fingerprint << started_ns << duration_ns << rows << cached << frames << @owner << @association
      end

      def list(list, entry)
        list.size < MOST_SPANS ? list << entry : @spans_left_out += 1
      end
    end
  end
end
