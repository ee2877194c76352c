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
    # Statements are counted and kept by the C extension where that is built (ext/castellan/log.c, {#listener}): no object for a statement.
    # A table with texts is made by {QueryRows} when the work is over.
    #
    # Without it, and with `batch: 1`, the methods here do the same. While the work runs, a statement is only noted, with its frames: a few
    # places in a flat array. What the tally does not need at once is done when BATCH are noted or somebody asks, because to do it in one
    # go takes a third of the time that it takes between two pieces of the application. Long texts are not held so long; with `batch: 1`
    # no text of the application's is, so that what is counted as retained is the application's.
    #
    # Past MOST statements only numbers are kept. A mistake in here must not reach the application: it stops the recorder, and {#failure}
    # says so. Statements of threads that are started meanwhile are kept by recorders of their own ({#strand}) and added up; time is that
    # of the thread that was recorded. One thread records; another may read meanwhile.
    class Recorder < Detect::Tally
      MOST = 2_000
      MOST_SPANS = 500
      FRAMES = 8
      BATCH = 64
      # How many places a statement takes in {#log}: text (nil without literals), fingerprint, start, duration, rows, cached, frames, owner,
      # association.
      FIELDS = 9
      NOTED = 10 # places that anything takes until it is counted
      LONG = 2_000
      NOTHING = [].freeze
      NATIVE = Castellan.const_defined?(:NativeLog)
      private_constant :NOTED, :LONG, :NOTHING, :NATIVE

      # @param literals [Boolean] whether texts are kept with the values in them
      # @param batch [Integer] how many statements are noted before they are counted
      # @param native [Boolean] whether the extension counts, where it is there
      def initialize(literals: false, batch: BATCH, native: true, **options)
        super(native: native && NATIVE && batch > 1, **options)
        @kept = NativeLog.new(@native, self, MOST, FRAMES, literals) if @native
        @literals = literals
        @batch = batch
        @most_noted = batch * NOTED
        @noted = []
        @walks = []
        @fingerprints = {}
        @log = []
        @looks = []
        @spans = []
        @threads = []
        @left_out = @spans_left_out = @view_ns = @queries = @cached_queries = @rows = 0
        @nesting = @kept || Nesting.new
        @lock = Mutex.new
      end

      # @return [StandardError, nil]
      def failure = @failure || @kept&.failure

      # @return [#query] whom a recording tells: the C extension at once, where that keeps the statements
      def listener = @kept || self

      # @return [Recorder] for a thread that is started now
      def strand
        return @threads.last if @threads.size >= MOST_STRANDS

        strand = Recorder.new(literals: @literals, batch: @batch, native: !@kept.nil?, slow_ns: singles.slow_ns,
                              order: @native ? @native.order : @order)
        @strands += [strand]
        @threads << strand
        strand
      end

      # Told by {Recording#query}.
      def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
        return @kept.query(sql, name, started_ns, duration_ns, cached, rows, binds) if @kept
        return if @failure

        sql = sql.to_s
        super
        sql = sql.dup unless sql.frozen? # whoever sent it may change it before it is counted
        sites = @log.size < MOST * FIELDS ? CallSite.frames(FRAMES) : NOTHING
        @noted.push(:query, sql, name, started_ns, duration_ns, cached, rows, sites, @walks[-2], @walks[-1])
        count if @noted.size >= @most_noted || sql.size > LONG
      rescue StandardError => error
        @failure = error
      end

      # Told by {Recording#enter}.
      def enter(owner, association)
        return @kept.enter(owner, association) if @kept

        super
        @walks.push(owner, association)
      end

      # Told by {Recording#leave}.
      def leave
        return @kept.leave if @kept

        super
        @walks.pop
        @walks.pop
      end

      # Told by {Recording#cache}.
      def cache(layer, outcome, started_ns, duration_ns)
        note(:cache, layer, outcome, started_ns, duration_ns)
      end

      # Told by {Recording#span}. What Rails says of an action's views (:view) has no beginning of its own; see {ViewEvents}.
      def span(kind, name, started_ns, duration_ns)
        note(:span, kind, name, started_ns, duration_ns)
      end

      # @param kind [Symbol] :sql, :render or :cache
      # @return [Integer] nanoseconds of that kind, less what happened within of another
      def exclusive(kind)
        count
        own = @nesting.total(kind)
        kind == :render ? [own, @view_ns - @nesting.total(:cache)].max : own
      end

      # @return [Array] see FIELDS
      def log
        count
        own = @kept ? @kept.entries : @log
        @threads.empty? ? own : [own, *@threads.map(&:log)].flatten(1)
      end

      # @param from_ns [Integer] what the start of a statement is counted from
      # @yieldparam text [String, nil]
      # @yieldparam fingerprint [String]
      # @yieldparam frames [Array]
      # @yieldparam owner [Class, nil]
      # @yieldparam association [Symbol, nil]
      # @yieldreturn [String] the last four cells of such statements; asked for at least once for those that are alike
      # @return [String] the cells of a {QueryTable}, in the order in which the statements began
      def cells(from_ns, &)
        return @kept.cells(from_ns, &) if @kept && @threads.empty?

        log.each_slice(FIELDS).sort_by.with_index { |(_text, _fingerprint, started_ns), index| [started_ns, index] }
           .map { |entry| cells_of(entry, from_ns, yield(*entry.values_at(0, 1, 6, 7, 8))) }.join(",")
      end

      # @return [Array<Array>] layer, outcome, start, duration
      def looks = count && @looks

      # @return [Array<Array>] kind, name, start, duration
      def spans = count && @spans

      # @return [Integer] how many looks and spans are not kept
      def spans_left_out = count && @spans_left_out

      # @return [Integer] how many statements are counted and not kept
      def left_out = count && @threads.sum(@kept ? @kept.left_out : @left_out, &:left_out)

      # @return [Hash{Symbol => Integer}] queries, cached queries and rows of all statements that are work of the application:
      #   transactions and what the ORM asks of the schema are not
      def totals
        count
        own = @kept ? @kept.totals : [@queries, @cached_queries, @rows]
        sums = @threads.map { |strand| strand.totals.values }.push(own).transpose.map(&:sum)
        { queries: sums[0], cached_queries: sums[1], rows: sums[2] }
      end

      # @return [Integer] how many statements were sent more than once but for their values
      def repeated = groups.count { |group| group.count > 1 }

      private

      def cells_of(entry, from_ns, places)
        started_ns, duration_ns, rows, cached = entry[2, 4]
        "#{started_ns - from_ns},#{duration_ns},#{rows || "null"},#{cached},#{places}"
      end

      def note(kind, one, two, started_ns, duration_ns)
        @noted.push(kind, one, two, started_ns, duration_ns, nil, nil, nil, nil, nil)
        count if @kept || @noted.size >= @most_noted # what lies within is told to the extension at once
      end

      # Counts what was noted, in the order in which it was told.
      # @return [true]
      def count
        @lock.synchronize { count_noted } unless @noted.empty?
        true
      rescue StandardError => error
        @failure = error
        true
      end

      def count_noted
        noted = @noted
        @noted = []
        index = 0
        while (kind = noted[index])
          case kind
          when :query then statement(noted, index)
          when :cache then looked(*noted[index + 1, 4])
          else spanned(*noted[index + 1, 4])
          end
          index += NOTED
        end
      end

      # By places and not by arguments: no object for a statement.
      def statement(noted, index)
        sql = noted[index + 1]
        @nesting.add(:sql, noted[index + 3], noted[index + 4])
        fingerprint = fingerprint_of(sql, noted[index + 2]) or return

        noted[index + 5] ? @cached_queries += 1 : @queries += 1
        @rows += noted[index + 6] if noted[index + 6]
        return @left_out += 1 if @log.size >= MOST * FIELDS

        @log.push(@literals ? sql : nil, fingerprint, noted[index + 3], noted[index + 4], noted[index + 6], noted[index + 5],
                  noted[index + 7], noted[index + 8], noted[index + 9])
      end

      def looked(layer, outcome, started_ns, duration_ns)
        @nesting.add(:cache, started_ns, duration_ns)
        list(@looks, [layer, outcome, started_ns, duration_ns])
      end

      def spanned(kind, name, started_ns, duration_ns)
        return @view_ns += duration_ns if kind == :view

        @nesting.add(kind, started_ns, duration_ns)
        list(@spans, [kind, name, started_ns, duration_ns])
      end

      # A statement that writes many rows at once is none for a tally, and one for a profile. Called by the extension, too.
      # @return [String, false] none for what is not work of the application
      def fingerprint_of(sql, name)
        fingerprint = @fingerprints[sql]
        fingerprint.nil? ? remember(sql, name) : fingerprint
      end

      def remember(sql, name)
        fingerprint = Fingerprint.of(sql)
        fingerprint = false unless Detect::Shape.of(fingerprint, name)
        @batch > 1 && sql.size <= LONG && @fingerprints.size < MOST_TEXTS ? @fingerprints[sql] = fingerprint : fingerprint
      end

      def list(list, entry)
        list.size < MOST_SPANS ? list << entry : @spans_left_out += 1
      end
    end
  end
end
