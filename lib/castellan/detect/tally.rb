# frozen_string_literal: true

module Castellan
  module Detect
    # Counts the statements of a unit of work by shape and association, and the records that lines load.
    #
    #   tally = Tally.new
    #   Instrument.record(tally) { User.all.each { |user| user.employee } }
    #   Verdict.new(tally).findings
    #
    # For SQL seen before, counting costs one Hash lookup and no allocation. Memory is bounded: past
    # MOST_TEXTS different SQL texts it counts only known shapes, past MOST_SHAPES no new shapes. Not
    # thread-safe: a thread that starts meanwhile has its own tally ({#strand}), which is merged afterwards.
    class Tally
      MOST_TEXTS = 2_000
      MOST_SHAPES = 500
      MOST_LOADS = 500
      MOST_STRANDS = 500
      NONE = [].freeze
      SEVERAL = /\blimit \(?(?!1\b)\d/i
      SLOW_NS = 500_000_000

      # One SQL text: the ORM's name for the statement, its shape (nil if it is not counted), a number that
      # stands for the text in comparisons, whether its LIMIT allows several rows, and the group in which it was
      # last counted.
      Text = Struct.new(:name, :shape, :number, :write, :several, :group)
      UNCOUNTED = Text.new.freeze
      private_constant :SEVERAL, :Text, :UNCOUNTED

      # The records of one model that one line loaded.
      # `count` is the number of records, or of rows if `joined` (a JOIN may return a record several times),
      # `times` the number of statements, `order` the number of earlier events.
      Load = Struct.new(:model, :site, :count, :times, :order, :joined) do
        def plus(other)
          Load.new(model, site, count + other.count, times + other.times, [order, other.order].min, joined || other.joined)
        end
      end

      # Associations that one line preloads. `nested`: another preload caused it. `join`: loaded by a JOIN.
      Preload = Struct.new(:site, :model, :associations, :nested, :join, :times, :order)

      # @param slow_ns [Integer, nil] see {#initialize}
      # @return [Recording] for {Recording.resume}: the profiler's recording of this request if it counts the
      #   same, else a recording of a new tally inside the current one
      def self.recording(slow_ns)
        current = Recording.current
        observer = current&.observer
        return current if observer.is_a?(Tally) && observer.request? && observer.slow_ns == slow_ns

        Recording.new(new(slow_ns: slow_ns), current)
      end

      # @return [Boolean] whether the statement writes many rows
      def self.bulk?(shape, sql)
        return true if shape.bulk?

        # Starts at the first "values" to read each byte only once, because the SQL may contain user input of
        # any size.
        text = sql.valid_encoding? ? sql : sql.b
        from = text.index(/\bvalues\b/i)
        from ? text.match?(/\)\s*,\s*\(/, from) : false
      end

      # An internal error. It is never raised to the application, but counting stops.
      attr_reader :failure
      # @return [Integer, nil] see {#initialize}
      attr_reader :slow_ns

      # @param slow_ns [Integer, nil] report a statement that takes at least this many nanoseconds; nil
      #   disables this
      # @param order [Integer] the number of earlier events
      def initialize(slow_ns: SLOW_NS, order: 0)
        @slow_ns = slow_ns
        @order = order
        @strands = NONE
        @texts = {}
        @groups = {}
        @loads = {}
        @preloads = {}
        @written = Hash.new(0)
        @around = []
        @writes = @answered_objects = 0
        @failed = false
        @failure = @owner = @association = @text = @join = @answered_ns = @singles = nil
      end

      # @return [Boolean] whether it observes one request from the start
      def request? = false

      # @return [Singles] single statements that are findings
      def singles = @singles ||= Singles.new

      # @return [Tally] the tally of a thread that starts now
      def strand
        return @strands.last if @strands.size >= MOST_STRANDS

        tally = Tally.new(slow_ns: @slow_ns, order: @order)
        @strands += [tally]
        tally
      end

      # Called by {Recording#query} after each statement.
      def query(sql, name, started_ns, duration_ns, cached, _rows, binds = nil)
        text = @texts[sql]
        text = text_of(sql.to_s, name) unless text && text.name == name
        @text = text
        @text_ns = duration_ns
        failed = @failed
        @failed = false if failed
        return unless text.shape

        group = text.group
        group = group_of(text) unless group && group.association == @association && group.owner.equal?(@owner)
        return slow(text, duration_ns) if group.nil?
        return answered(group, started_ns) if cached

        if group.add(started_ns, duration_ns, failed) then learn(group, text, sql, binds)
        elsif text.write then wrote(text.shape)
        end
        slow(text, duration_ns)
      rescue StandardError => error
        @failure = error
        @texts = {}
      end

      # Called by {Recording#enter}.
      def enter(owner, association)
        @around.push(@owner, @association)
        @owner = owner
        @association = association
      end

      # Called by {Recording#leave}.
      def leave
        @association = @around.pop
        @owner = @around.pop
      end

      # Called by {Recording#loaded}.
      def loaded(model, count, site)
        here = @loads[site] || (@loads.size < MOST_LOADS ? @loads[site] = {} : return)
        model = model.to_s # a class may have no name
        load = here[model] || (here[model] = Load.new(model, site, 0, 0, @order += 1, @text&.shape&.joins? || false))
        load.count += count
        load.times += 1
      end

      # Called by {Recording#notify}.
      def preloading(model, associations, join: false)
        key = [CallSite.current, model, associations, @owner == Instrument::PRELOAD, join]
        return if @preloads.size >= MOST_LOADS && !@preloads.key?(key)

        (@preloads[key] ||= Preload.new(*key, 0, @order += 1)).times += 1
      end

      # Called by {Recording#notify} before the failed statement is reported. If the group's next statement
      # succeeds, it is a retry and replaces the failed one.
      def failed
        @failed = true
      end

      # Called by {Recording#notify} when a JOIN has returned, before its records send statements: callbacks, and
      # `eager` of Sequel.
      def joining
        @join = @text
        @join_ns = @text_ns
      end

      # Called by {Recording#notify}.
      # @param names [Hash] the tree of joined associations
      def joined(model, rows, records, names)
        preloading(model, names, join: true)
        singles.wide(@join.shape, @join_ns, model, rows, records, names) if @join&.shape
      end

      # @return [Array<Finding>] findings of single statements, of all threads
      def single_findings
        return NONE if @singles.nil? && @strands.empty?

        @strands.map(&:singles).reduce(singles, :merge).findings
      end

      # @return [Array<Group>] in the order of their first statements
      def groups
        own = @groups.values.flatten
        return own.sort_by(&:order) if @strands.empty?

        all = (own + @strands.flat_map(&:groups)).group_by { |group| [group.shape.key, group.owner, group.association] }
        all.values.map { |same| same.reduce(:merge) }.sort_by(&:order)
      end

      # @return [Boolean] whether a shape was sent at least that often, over at least that time
      def repeats?(times, min_ns = 0)
        groups.any? { |group| [group, group.answers].any? { |one| one && one.count >= times && one.span_ns >= min_ns } }
      end

      # A fast check that is enough for most requests.
      # @return [Boolean] whether nothing can be a finding: no statement or association repeated, no writes,
      #   nothing slow, and no {#failure}. Otherwise {Verdict} decides.
      def no_repeats?
        return false if @failure || @strands.any? || @singles&.any?

        own = @groups.values.flatten
        return false if own.any? { |group| group.count > 1 || group.cached > 1 || group.shape.write? }

        walks = own.select(&:association)
        walks.uniq { |group| [group.owner, group.association] }.size == walks.size
      end

      # @return [Array<Preload>]
      def preloads = @preloads.values + @strands.flat_map(&:preloads)

      # @return [Array<Load>]
      def loads = loads_by_site.values.flat_map(&:values)

      protected

      # @return [Hash{Integer => Hash{String => Load}}] by site and model
      def loads_by_site
        @strands.map { |strand| strand.loads_by_site }.reduce(@loads) do |all, more|
          all.merge(more) { |_site, one, other| one.merge(other) { |_model, left, right| left.plus(right) } }
        end
      end

      private

      def answered(group, started_ns)
        objects = GC.stat(:total_allocated_objects)
        group.answered(started_ns, @answered_ns && (started_ns - @answered_ns), objects - @answered_objects)
        @answered_ns = started_ns
        @answered_objects = objects
      end

      # Two models, or two ORMs, may send the same SQL. The second has its own key, which includes the name.
      def text_of(sql, name)
        return UNCOUNTED if @failure

        key = @texts.key?(sql) ? [sql, name] : sql
        @texts[key] || read(sql, name).then { |text| text && @texts.size < MOST_TEXTS ? @texts[key] = text : text || UNCOUNTED }
      end

      # Bulk writes are not counted, because a write loop should become one. Switches of the schema are not
      # counted, either.
      def read(sql, name)
        fingerprint = Fingerprint.of(sql)
        shape = Shape.of(fingerprint, name)
        return wrote(Shape.new(fingerprint)) if shape.nil? && Shape.switches?(fingerprint)
        return wrote(shape) if shape&.write? && Tally.bulk?(shape, sql)

        Text.new(name, shape, sql.hash, shape&.write?, shape&.single? && shape.sequel? && sql.b.match?(SEVERAL))
      end

      def wrote(shape)
        @writes += 1
        @written[shape.table] += 1
        nil
      end

      # Does not compare the values of writes, because an identical write is a write, too.
      def learn(group, text, sql, binds)
        if text.write then wrote(text.shape)
        else group.learn(binds ? binds.hash ^ text.number : text.number, written(text.shape), @writes)
        end
        group.pieces&.add(sql, binds)
      end

      def slow(text, duration_ns)
        singles.slow(text.shape, duration_ns) if @slow_ns && duration_ns >= @slow_ns
      end

      # A write to an unknown table, such as a switch of schemas, may affect any table.
      def written(shape)
        tables = shape.tables
        @written[nil] + (tables.size == 1 ? @written[tables.first] : tables.sum { |table| @written[table] })
      end

      # @return [Group, nil] nil past MOST_SHAPES, and for Castellan's own statements
      def group_of(text)
        return if @owner.equal?(Recording::OWN)

        key = text.shape.key
        alike = @groups[key] || (@groups.size < MOST_SHAPES ? @groups[key] = [] : return)
        text.group = alike.find { |group| group.through?(@owner, @association) } ||
                     Group.new(text.shape, @owner, @association, @order += 1).tap { |group| alike << group }
        text.group.several! if text.several
        text.group
      end
    end
  end
end
