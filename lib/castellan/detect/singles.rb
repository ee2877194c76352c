# frozen_string_literal: true

module Castellan
  module Detect
    # Collects single statements that are findings: slow ones, and JOINs that repeat each record.
    #
    #   singles = Singles.new
    #   singles.slow(shape, 812_000_000)                 # call it at the line that sends the statement
    #   singles.wide(shape, 9_000_000, User, 500, 5, { posts: {} })   # 500 rows for 5 users, because of their posts
    #   singles.findings                                 # => [Finding, Finding]
    #
    # Keeps at most {MOST} statements, each with its site and one stack. Not thread-safe: each thread has its
    # own {Tally}.
    class Singles
      MOST = 20
      # A JOIN is wide if it returns at least this many rows, and this many rows per record.
      WIDE_ROWS = 50
      WIDE_TIMES = 10

      Single = Struct.new(:kind, :shape, :site, :stack, :join, :times, :total_ns) do
        def plus(other)
          widest = [join, other.join].compact.max_by(&:rows)
          Single.new(kind, shape, site, stack, widest, times + other.times, total_ns + other.total_ns)
        end
      end
      # A JOIN that returned `rows` for `records` of `model`; `names` is the tree of joined associations.
      Join = Struct.new(:model, :rows, :records, :names)
      private_constant :Single, :Join

      def initialize
        @all = {}
      end

      def any? = @all.any?

      def slow(shape, duration_ns)
        single = keep(:slow_query, shape)
        single.total_ns += duration_ns if single
      end

      def wide(shape, duration_ns, model, rows, records, names)
        return if rows < WIDE_ROWS || rows < records * WIDE_TIMES

        single = keep(:wide_join, shape) or return
        single.total_ns += duration_ns
        single.join = Join.new(model, rows, records, names) if rows > (single.join&.rows || 0)
      end

      def merge(other) = dup.tap { |singles| singles.all = all.merge(other.all) { |_key, one, more| one.plus(more) } }

      def findings = @all.values.map { |single| single.join ? wide_finding(single, *single.join) : slow_finding(single) }

      protected

      attr_accessor :all

      private

      def keep(kind, shape)
        site = CallSite.current
        key = [kind, shape.fingerprint, site]
        return if !@all.key?(key) && @all.size >= MOST

        single = @all[key] ||= Single.new(kind, shape, site, CallSite.stack, nil, 0, 0)
        single.times += 1
        single
      end

      def slow_finding(single)
        finding(single, total_ns: single.total_ns,
                        fix_refused: "it is slow by itself, not because it repeats: read its plan with EXPLAIN ANALYZE")
      end

      # A condition on a joined table needs the JOIN or a subquery, so there is no automatic fix.
      def wide_finding(single, model, count, records, names)
        at = CallSite.location(single.site)
        name = names.keys.first
        rows = "#{count} rows came for #{Words.counted(records, model)}: "
        preload = Detect.models(model).preload(names)
        fix = "#{rows}write .#{preload} instead of the JOIN at #{at}" unless filtered?(single.shape, model, name)
        refused = "#{rows}choose the records by a subquery at #{at} and write .#{preload} instead of the JOIN" unless fix
        finding(single, total_ns: single.total_ns, association: name && "#{model.name}##{name}", parent_location: at,
                        parent_count: records, parent_model: model.name, fix: fix, fix_refused: refused)
      end

      def filtered?(shape, model, name)
        link = Detect.models(model).link(model, name)
        link&.target && shape.fingerprint[/ where (.*)/m, 1].to_s.match?(/\b#{Regexp.escape(link.table)}\./)
      end

      def finding(single, **more)
        Finding.new(kind: single.kind, count: single.times, cached_count: 0, fingerprint: single.shape.fingerprint,
                    location: CallSite.location(single.site), stack: single.stack.freeze,
                    source: single.site && CallSite.source(single.site), **more)
      end
    end
  end
end
