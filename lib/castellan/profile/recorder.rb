# frozen_string_literal: true

module Castellan
  module Profile
    # Records a profile: a {Detect::Tally} that also keeps statements, cache lookups and renderings.
    #
    #   recorder = Recorder.new
    #   Instrument.record(recorder) { User.all.each(&:employee) }
    #   recorder.exclusive(:sql)   # => 812_000 nanoseconds
    #
    # After MOST statements it only counts. An error stops the recorder and is returned by {#failure}; the
    # application does not see it. A thread that starts meanwhile has its own recorder ({#strand}); its
    # statements are included, but times are those of the recorded thread.
    class Recorder < Detect::Tally
      MOST = 2_000
      MOST_SPANS = 500
      FRAMES = 8
      LONG = 2_000
      private_constant :LONG

      # `sql` is nil unless literals are kept; `sites` are the frames of the application, see
      # {CallSite.frames}.
      Statement = Struct.new(:sql, :fingerprint, :started_ns, :duration_ns, :rows, :cached, :sites, :owner, :association)

      # @param literals [Boolean] whether to keep the literal values in the SQL
      # @param hold_texts [Boolean] false keeps no Strings, because a memory profile would count them as
      #   retained
      # @param request [Boolean] whether it records one request, so that {Detect::Middleware} can use it, too
      def initialize(literals: false, hold_texts: true, request: false, **options)
        super(**options)
        @literals = literals
        @hold_texts = hold_texts
        @request = request
        @fingerprints = {}
        @log = []
        @looks = []
        @spans = []
        @ended = []
        @times = Hash.new(0)
        @apart_ns = 0
        @left_out = @spans_left_out = @view_ns = @queries = @cached_queries = @rows = 0
      end

      # @return [Array<Array>] layer, outcome, start and duration; if the layer reports them, bytes and age in
      #   seconds
      # @return [Array<Array>] kind, name, start and duration
      # @return [Integer] the number of cache lookups and spans that were not kept
      attr_reader :looks, :spans, :spans_left_out

      # @return [Recorder] the recorder of a thread that starts now
      def strand
        return @strands.last if @strands.size >= MOST_STRANDS

        strand = Recorder.new(literals: @literals, hold_texts: @hold_texts, slow_ns: slow_ns, order: @order)
        @strands += [strand]
        strand
      end

      # (see Detect::Tally#request?)
      def request? = @request

      def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
        return if @failure

        sql = sql.to_s
        super
        spend(:sql, started_ns, duration_ns)
        fingerprint = fingerprint_of(sql, name) or return

        cached ? @cached_queries += 1 : @queries += 1
        @rows += rows if rows
        return @left_out += 1 if @log.size >= MOST

        @log << Statement.new(@literals ? sql.dup : nil, fingerprint, started_ns, duration_ns, rows, cached, CallSite.frames(FRAMES),
                              @owner, @association)
      rescue StandardError => error
        @failure = error
      end

      # Called by {Recording#notify} before a statement whose duration leaves out the time of a block, see {Recording.apart}.
      def apart(block_ns)
        @apart_ns = block_ns
      end

      def cache(layer, outcome, started_ns, duration_ns, bytes = nil, age = nil)
        spend(:cache, started_ns, duration_ns)
        list(@looks, [layer, outcome, started_ns, duration_ns, *([bytes, age] if bytes)])
      end

      # Rails' event for the views of an action (:view) has no start time; see {ViewEvents}.
      def span(kind, name, started_ns, duration_ns)
        return @view_ns += duration_ns if kind == :view
        return unless kind == :render # the statements of other phases are listed

        spend(kind, started_ns, duration_ns)
        list(@spans, [kind, name, started_ns, duration_ns])
      end

      # @param kind [Symbol] :sql, :render or :cache
      # @return [Integer] nanoseconds, without nested times of the other kinds
      def exclusive(kind) = kind == :render ? [@times[kind], @view_ns - @times[:cache]].max : @times[kind]

      # @return [Array<Statement>] in the order of their start
      def log = @strands.flat_map(&:log).concat(@log).sort_by.with_index { |statement, index| [statement.started_ns, index] }

      # @return [Integer] number of statements that were counted but not kept
      def left_out = @strands.sum(@left_out, &:left_out)

      # @return [Hash{Symbol => Integer}] queries, cached queries and rows of the application
      def totals
        own = { queries: @queries, cached_queries: @cached_queries, rows: @rows }
        @strands.reduce(own) { |sums, strand| sums.merge(strand.totals) { |_, one, other| one + other } }
      end

      # @return [Integer] the number of fingerprints that were sent more than once
      def repeated = groups.count { |group| group.count > 1 }

      private

      # A profile includes bulk writes, which the tally ignores.
      # @return [String, false] false for statements that are not the application's, such as transactions
      def fingerprint_of(sql, name)
        fingerprint = @fingerprints[sql]
        return fingerprint unless fingerprint.nil?

        fingerprint = Fingerprint.of(sql)
        fingerprint = false unless Detect::Shape.of(fingerprint, name)
        @fingerprints[sql] = fingerprint if @hold_texts && sql.size <= LONG && @fingerprints.size < MOST_TEXTS
        fingerprint
      end

      # Adds a duration, minus the events inside, which ended earlier. It contains none of those in a block that it left out.
      def spend(kind, started_ns, duration_ns)
        inside = 0
        inside += @ended.pop.last while @ended.any? && @ended.last.first >= started_ns
        @times[kind] += [duration_ns - [inside - @apart_ns, 0].max, 0].max
        @ended << [started_ns, duration_ns + [inside, @apart_ns].min]
        @apart_ns = 0
      end

      def list(list, entry)
        list.size < MOST_SPANS ? list << entry : @spans_left_out += 1
      end
    end
  end
end
