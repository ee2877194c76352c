# frozen_string_literal: true

module Castellan
  module Detect
    # Collects statements that are slow without repeating: long queries, and JOINs that return each record
    # many times.
    #
    #   singles = Singles.new(slow_ns: 500_000_000)
    #   singles.slow(shape, 812_000_000)                 # call it at the line that sends the statement
    #   singles.wide(shape, User, 500, 5, [:posts])      # 500 rows for 5 users, because of their posts
    #   singles.findings                                 # => [Finding, Finding]
    #
    # Keeps at most {MOST} statements, each with its site and one stack. Not thread-safe: each {Tally} of a
    # thread has its own.
    class Singles
      MOST = 20
      # A JOIN is wide if it returns at least this many rows, and this many per record.
      WIDE_ROWS = 50
      WIDE_TIMES = 10

      # One statement at one site.
      Single = Struct.new(:kind, :shape, :site, :stack, :model, :rows, :records, :names, :times, :total_ns, keyword_init: true)
      private_constant :Single

      # @return [Integer, nil] the threshold for slow statements in nanoseconds; nil disables them
      attr_reader :slow_ns

      def initialize(slow_ns:)
        @slow_ns = slow_ns
        @all = {}
      end

      # @return [Boolean]
      def any? = @all.any?

      # @param shape [Shape]
      # @param duration_ns [Integer]
      # @return [void]
      def slow(shape, duration_ns)
        single = keep(:slow_query, shape) or return

        single.times += 1
        single.total_ns += duration_ns
      end

      # @param shape [Shape]
      # @param model [Class] the model of the records
      # @param rows [Integer]
      # @param records [Integer]
      # @param names [Hash] the tree of joined associations
      # @return [void]
      def wide(shape, model, rows, records, names)
        return if rows < WIDE_ROWS || rows < records * WIDE_TIMES

        single = keep(:wide_join, shape) or return
        single.times += 1
        return if single.rows.to_i >= rows

        single.model = model
        single.rows = rows
        single.records = records
        single.names = names
      end

      # @return [Singles] these and those of another thread
      def merge(other) = dup.tap { |singles| singles.all = all.merge(other.all) { |_key, one, more| one.times += more.times and one } }

      # @return [Array<Finding>]
      def findings = @all.values.map { |single| single.kind == :slow_query ? slow_finding(single) : wide_finding(single) }

      protected

      attr_accessor :all

      private

      def keep(kind, shape)
        site = CallSite.current
        key = [kind, shape.fingerprint, site]
        return @all[key] if @all.key?(key) || @all.size >= MOST

        @all[key] = Single.new(kind: kind, shape: shape, site: site, stack: CallSite.stack, times: 0, total_ns: 0)
      end

      def slow_finding(single)
        finding(single, total_ns: single.total_ns,
                        fix_refused: "it is slow by itself, not because it repeats: read its plan with EXPLAIN ANALYZE")
      end

      # A condition on a joined table needs the JOIN, or a subquery, so there is no automatic fix then.
      def wide_finding(single)
        at = CallSite.location(single.site)
        name = single.names.keys.first
        rows = "#{single.rows} rows came for #{Words.counted(single.records, single.model)}: "
        preload = Detect.models(single.model).preload(single.names)
        fix = "#{rows}write .#{preload} instead of the JOIN at #{at}" unless filtered?(single)
        refused = "#{rows}choose the records by a subquery at #{at} and write .#{preload} instead of the JOIN" unless fix
        finding(single, association: name && "#{single.model.name}##{name}", parent_location: at, parent_count: single.records,
                        parent_model: single.model.name, fix: fix, fix_refused: refused)
      end

      def filtered?(single)
        link = Detect.models(single.model).link(single.model, single.names.keys.first)
        link&.target && single.shape.fingerprint[/ where (.*)/m, 1].to_s.match?(/\b#{Regexp.escape(link.table)}\./)
      end

      def finding(single, **more)
        Finding.new(kind: single.kind, count: single.times, cached_count: 0, fingerprint: single.shape.fingerprint,
                    location: CallSite.location(single.site), stack: single.stack.freeze,
                    source: single.site && CallSite.source(single.site), **more)
      end
    end
  end
end
