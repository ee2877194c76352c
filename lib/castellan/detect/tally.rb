# frozen_string_literal: true

module Castellan
  module Detect
    # Observes a unit of work for the detector: counts statements by shape and association, and records loads.
    # {Verdict} turns the counts into findings.
    #
    #   tally = Tally.new
    #   Instrument.record(tally) { User.all.each { |user| user.employee } }
    #   Verdict.new(tally).findings
    #
    # SQL that was seen before costs two Hash lookups and no allocation. Bounded: past MOST_TEXTS different
    # SQL texts only known shapes are counted; past MOST_SHAPES no new shape is. Not thread-safe: a thread
    # started meanwhile has its own tally ({#strand}), which is merged afterwards.
    class Tally
      MOST_TEXTS = 2_000
      MOST_SHAPES = 500
      MOST_LOADS = 500
      MOST_STRANDS = 500
      NONE = [].freeze

      # Replaces the texts after an internal error, so that nothing more is counted.
      UNCOUNTED = Hash.new(Hash.new(false).freeze).freeze
      private_constant :UNCOUNTED

      # The parsed form of one SQL text: its group, and a number that represents the text in comparisons.
      Text = Struct.new(:group, :number, :shape, :write)

      # The running total of one model's records loaded at one site.
      Sum = Struct.new(:count, :times, :order, :joined) do
        def plus(other) = self.class.new(count + other.count, times + other.times, [order, other.order].min, joined || other.joined)
      end
      private_constant :Text, :Sum

      SLOW_NS = 500_000_000
      # @param slow_ns [Integer, nil] see {#initialize}
      # @return [Recording] the profiler's recording of this request, which counts the same, else one of a new
      #   tally inside the current recording; call {Recording.resume} with it
      def self.recording(slow_ns)
        current = Recording.current
        observer = current&.observer
        return current if observer.is_a?(Tally) && observer.request? && observer.slow_ns == slow_ns

        Recording.new(new(slow_ns: slow_ns), current)
      end

      # @return [Boolean] whether a write affects many rows at once
      def self.bulk?(shape, sql) = shape.bulk? || several_rows?(sql.valid_encoding? ? sql : sql.b)

      # Starts at the first "values", so that each byte is read once: the SQL may contain any user input.
      def self.several_rows?(text)
        from = text.index(/\bvalues\b/i)
        from ? text.match?(/\)\s*,\s*\(/, from) : false
      end
      private_class_method :several_rows?

      # @param slow_ns [Integer, nil] the duration in nanoseconds from which a statement is slow; nil disables
      #   this
      # @param order [Integer] the number of earlier events
      def initialize(slow_ns: SLOW_NS, order: 0)
        @slow_after = slow_ns
        @slow_ns = slow_ns || Float::INFINITY
        @order = order
        @strands = NONE
        @texts = {}
        @heads = {}
        @loads = {}
        @written = Hash.new(0)
        @around = []
        @writes = @read = @answered_objects = 0
        @failed = false
        @failure = @owner = @association = @text = @answered_ns = nil
      end

      # @return [Boolean] whether it observes one request from its start
      def request? = false

      # @return [Integer, nil] see {#initialize}
      def slow_ns = @slow_after

      # @return [Singles] statements that are findings by themselves
      def singles = @singles ||= Singles.new(slow_ns: @slow_after)

      # @return [Tally] for a thread that starts now
      def strand
        return @strands.last if @strands.size >= MOST_STRANDS

        tally = Tally.new(slow_ns: @slow_after, order: @order)
        @strands += [tally]
        tally
      end

      # @return [StandardError, nil] an internal error, which is never raised to the application; counting
      #   stopped then
      attr_reader :failure

      # Called by {Recording#query} after each statement.
      def query(sql, name, started_ns, duration_ns, cached, _rows, binds = nil)
        known = @texts[name]
        text = known && known[sql]
        text = text_of(sql.to_s, name) if text.nil?
        @text = text
        failed = @failed
        @failed = false
        return unless text

        group = text.group
        group = group_of(text) unless group && group.association == @association && group.owner.equal?(@owner)
        return if group.nil?
        return add_cached(group, started_ns) if cached

        if group.add(started_ns, duration_ns, failed) then learn(group, text, sql, binds)
        elsif text.write then wrote(text.shape)
        end
        slow(text.shape, duration_ns) if duration_ns >= @slow_ns
      rescue StandardError => error
        @failure = error
        @texts = UNCOUNTED
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
        sum = here[model] || (here[model] = Sum.new(0, 0, @order += 1, joined?))
        sum.count += count
        sum.times += 1
      end

      # Called by {Recording#notify} before the failed statement is reported. If the group's next statement
      # succeeds, it is a retry and replaces the failed one.
      def failed
        @failed = true
      end

      # Called by {Recording#notify}.
      # @param names [Hash] the tree of joined associations
      def joined(model, rows, records, names)
        shape = @text&.shape if @text
        singles.wide(shape, model, rows, records, names) if shape
      end

      # @return [Array<Finding>] findings of single statements, of all threads
      def single_findings
        return NONE if @singles.nil? && @strands.empty?

        @strands.map { |strand| strand.singles }.reduce(singles, :merge).findings
      end

      # @return [Array<Group>] in the order of their first statements
      def groups
        own = own_groups
        return own.sort_by(&:order) if @strands.empty?

        all = (own + @strands.flat_map(&:groups)).group_by { |group| [group.shape.key, group.owner, group.association] }
        all.values.map { |same| same.reduce(:merge) }.sort_by(&:order)
      end

      # @param times [Integer]
      # @param min_ns [Integer]
      # @return [Boolean] whether a shape was sent at least that often, over at least that time
      def repeats?(times, min_ns = 0)
        groups.any? { |group| [group, group.answers].any? { |one| one && one.count >= times && one.span_ns >= min_ns } }
      end

      # The fast path that settles most requests.
      # @return [Boolean] whether nothing can be a finding: no statement or association repeated, no writes,
      #   nothing slow, and no {#failure}. Otherwise {Verdict} decides.
      def no_repeats?
        return false if @failure || @strands.any? || @singles&.any?

        walks = own_groups.select { |group| group.count > 1 || group.cached > 1 || group.shape.write? ? (return false) : group.association }
        walks.size < 2 || walks.uniq { |group| [group.owner, group.association] }.size == walks.size
      end

      # @return [Array<Load>]
      def loads
        sums.flat_map do |site, here|
          here.map do |model, sum|
            Load.new(model: model, site: site, root: here.keys.first, **sum.to_h)
          end
        end
      end

      protected

      # @return [Hash{Integer => Hash{String => Sum}}] by site and model
      def sums
        @strands.map { |strand| strand.sums }.reduce(@loads) do |all, more|
          all.merge(more) { |_site, one, other| one.merge(other) { |_model, left, right| left.plus(right) } }
        end
      end

      private

      def add_cached(group, started_ns)
        objects = GC.stat(:total_allocated_objects)
        group.add_cached(started_ns, @answered_ns && (started_ns - @answered_ns), objects - @answered_objects)
        @answered_ns = started_ns
        @answered_objects = objects
      end

      # @return [Text, false] false for statements that are not counted
      def text_of(sql, name)
        known = @texts[name] || (@texts.size < MOST_TEXTS ? @texts[name] = {} : {})
        known.fetch(sql) { read(sql, name, known) } || false
      end

      def joined? = @text ? @text.shape.joins? : false

      def own_groups = @heads.values.flat_map { |head| chain(head) }

      # @return [Text, false, nil] false or nil for statements that are not counted
      def read(sql, name, known)
        fingerprint = Fingerprint.of(sql)
        shape = Shape.of(fingerprint, name)
        return Shape.switches?(fingerprint) ? bulk(Shape.new(fingerprint)) : keep(known, sql, false) if shape.nil?

        return bulk(shape) if shape.write? && Tally.bulk?(shape, sql)

        keep(known, sql, Text.new(nil, sql.hash, shape, shape.write?))
      end

      # A bulk write is what a write loop should become, so it is not counted.
      # @return [nil]
      def bulk(shape)
        wrote(shape)
        nil
      end

      def wrote(shape)
        @writes += 1
        @written[shape.table] += 1
      end

      def slow(shape, duration_ns) = singles.slow(shape, duration_ns)

      def keep(known, sql, text)
        return text if @read >= MOST_TEXTS

        @read += 1
        known[sql] = text
      end

      # Values of writes are not compared: a repeated identical write is a write, too.
      def learn(group, text, sql, binds)
        if text.write then wrote(text.shape)
        else group.learn(binds ? binds.hash ^ text.number : text.number, written(text.shape), @writes)
        end
        group.pieces&.add(sql, binds)
      end

      # A write to an unknown table, such as a switch of schemas, may affect any table.
      def written(shape)
        tables = shape.tables
        @written[nil] + (tables.size == 1 ? @written[tables.first] : tables.sum { |table| @written[table] })
      end

      def group_of(text)
        group = text.group ||= head(text.shape, @owner, @association)
        until group.nil? || group.through?(@owner, @association)
          group = group.next ||= Group.new(text.shape, @owner, @association, @order += 1)
        end
        group
      end

      def head(shape, owner, association)
        known = @heads[shape.key]
        return known if known || @heads.size >= MOST_SHAPES

        @heads[shape.key] = Group.new(shape, owner, association, @order += 1)
      end

      def chain(group)
        groups = []
        while group
          groups << group
          group = group.next
        end
        groups
      end
    end
  end
end
