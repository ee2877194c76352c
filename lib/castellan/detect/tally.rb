# frozen_string_literal: true

module Castellan
  begin
    require "castellan/castellan_ext"
  rescue LoadError
    nil # without a C compiler the methods below count: the same, slower
  end

  module Detect
    # The observer of the detector: counts statements by shape and association while a unit of work runs, and notes where
    # records were loaded. Decides nothing; {Verdict} does, afterwards.
    #
    #   tally = Tally.new
    #   Instrument.record(tally) { User.all.each { |user| user.employee } }
    #   Verdict.new(tally).findings
    #
    # A statement whose text was seen before costs a look into a hash and one for the call site, and no object. Bounded:
    # past MOST_TEXTS different texts only known shapes are counted; past MOST_SHAPES nothing new is. One thread's: a thread that
    # is started meanwhile has a tally of its own, a {#strand}, which is added up with this one afterwards.
    #
    # Counted by the C extension where that is built (ext/castellan/tally.c, {#listener}), else by the methods here, which it is tested
    # against.
    class Tally
      MOST_TEXTS = 2_000
      MOST_SHAPES = 500
      MOST_LOADS = 500
      MOST_STRANDS = 500
      NONE = [].freeze

      # What is known of one text: its group and a number that stands for it in comparisons.
      Text = Struct.new(:group, :number, :shape, :write)

      # What was loaded of one model at one site, while it is added up.
      Sum = Struct.new(:count, :times, :order, :joined) do
        def plus(other) = self.class.new(count + other.count, times + other.times, [order, other.order].min, joined || other.joined)
      end
      private_constant :Text, :Sum

      SLOW_NS = 500_000_000
      NATIVE = Castellan.const_defined?(:NativeTally)
      # What a text is, for the C extension.
      READS = 1
      WRITES = 2
      WRITES_BULK = 4
      HAS_PIECES = 8
      JOINS = 16
      private_constant :READS, :WRITES, :WRITES_BULK, :HAS_PIECES, :JOINS

      # Asked by the C extension, once for a text.
      # @return [Array(Shape, Integer), nil] none for what is not counted
      def self.read(sql, name)
        fingerprint = Fingerprint.of(sql)
        shape = Shape.of(fingerprint, name)
        return ([Shape.new(fingerprint), WRITES_BULK] if Shape.switches?(fingerprint)) if shape.nil?
        return [shape, WRITES_BULK] if shape.write? && bulk?(shape, sql.to_s)

        [shape, (shape.write? ? WRITES : READS) | (shape.pieces? ? HAS_PIECES : 0) | (shape.joins? ? JOINS : 0)]
      end

      # @return [Recording::Wants] the same for all that are made of a class
      def self.wants = @wants ||= Recording::Wants.of_class(self)

      # A new tally in a recording, for a request: there each method that is called is cold.
      # @param slow_ns [Integer, nil] see {#initialize}
      # @return [Recording] within what is recorded already, not yet current
      def self.recording(slow_ns)
        NATIVE && equal?(Tally) ? NativeTally.recording(slow_ns) : Recording.new(new(slow_ns: slow_ns), Recording.current)
      end

      # @return [Boolean] whether a write is of many rows at once
      def self.bulk?(shape, sql) = shape.bulk? || several_rows?(sql.valid_encoding? ? sql : sql.b)

      # From the first "values" on, so that each byte is read once: the text may hold whatever a user wrote.
      def self.several_rows?(text)
        from = text.index(/\bvalues\b/i)
        from ? text.match?(/\)\s*,\s*\(/, from) : false
      end
      private_class_method :several_rows?

      # @return [Boolean] whether the extension counts, where it is there; not for what looks at the counting itself
      def self.native? = false

      # @param slow_ns [Integer, nil] from how long one statement is slow; nil: none is
      # @param order [Integer] how much had been seen before
      # @param native [Boolean] whether the extension counts, where it is there
      def initialize(slow_ns: SLOW_NS, order: 0, native: instance_of?(Tally) || self.class.native?)
        @slow_after = slow_ns
        @strands = NONE
        native && NATIVE ? @native = NativeTally.new(self, slow_ns, order) : count_in_ruby(slow_ns, order)
      end

      # @return [Recording::Wants] what a recording must tell it
      def wants = self.class.wants

      # @return [#query] whom a recording tells: the C extension at once, where nothing is counted besides
      def listener = @native && instance_of?(Tally) ? @native : self

      # @return [Singles] statements that are findings by themselves
      def singles = @singles ||= Singles.new(slow_ns: @slow_after)

      # @return [Tally] for a thread that is started now
      def strand
        return @strands.last if @strands.size >= MOST_STRANDS

        tally = Tally.new(slow_ns: @slow_after, order: @native ? @native.order : @order, native: !@native.nil?)
        @strands += [tally]
        tally
      end

      # @return [StandardError, nil] a mistake in here, which reaches nobody: from then on nothing was counted
      def failure = @native ? @native.failure : @failure

      # Told by {Recording#query}.
      def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
        return @native.query(sql, name, started_ns, duration_ns, cached, rows, binds) if @native

        count_statement(sql.to_s, name, started_ns, duration_ns, cached, binds) unless @failure
      rescue StandardError => error
        @failure = error
      end

      # Told by {Recording#enter}.
      def enter(owner, association)
        return @native.enter(owner, association) if @native

        @around.push(@owner, @association)
        @owner = owner
        @association = association
      end

      # Told by {Recording#leave}.
      def leave
        return @native.leave if @native

        @association = @around.pop
        @owner = @around.pop
      end

      # Told by {Recording#loaded}.
      def loaded(model, count, site)
        return @native.loaded(model, count, site) if @native

        here = @loads[site] || (@loads.size < MOST_LOADS ? @loads[site] = {} : return)
        model = model.to_s # a class may have no name
        sum = here[model] || (here[model] = Sum.new(0, 0, @order += 1, joined?))
        sum.count += count
        sum.times += 1
      end

      # Told by {Recording#slept}.
      def slept
        @native ? @native.slept : @naps += 1
      end

      # Told by {Recording#failed}: the database refuses the statement that is told next. Where the next of its group is not refused, that
      # takes its place: who was refused tries again.
      def failed
        @native ? @native.failed : @failed = true
      end

      # Told by {Instrument} of records that came by a JOIN.
      # @param names [Hash] the tree of associations that came with them
      def joined(model, rows, records, names)
        shape = @native ? @native.shape : @text&.shape
        singles.wide(shape, model, rows, records, names) if shape
      end

      # @return [Array<Finding>] of single statements, those of all threads
      def single_findings
        return NONE if @singles.nil? && @strands.empty?

        @strands.map { |strand| strand.singles }.reduce(singles, :merge).findings
      end

      # @return [Array<Group>] in the order in which they were first seen
      def groups
        own = own_groups
        return own.sort_by(&:order) if @strands.empty?

        all = (own + @strands.flat_map(&:groups)).group_by { |group| [group.shape.key, group.owner, group.association] }
        all.values.map { |same| same.reduce(:merge) }.sort_by(&:order)
      end

      # @param times [Integer]
      # @param min_ns [Integer]
      # @return [Boolean] whether any shape was sent that often, and for so long
      def repeats?(times, min_ns = 0)
        return @native.repeats?(times, min_ns) if @native && @strands.empty?

        groups.any? { |group| group.count >= times && group.span_ns >= min_ns }
      end

      # The first look at a request, and for most the last: makes nothing.
      # @return [Boolean] whether nothing can be a finding: no statement and no association was asked twice, nothing was written, nothing
      #   was slow, and there is no {#failure}. Where it is false, {Verdict} knows.
      def once? = @native && @strands.empty? && @singles.nil? ? @native.once? : false

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
        @strands.map { |strand| strand.sums }.reduce(own_loads) do |all, more|
          all.merge(more) { |_site, one, other| one.merge(other) { |_model, left, right| left.plus(right) } }
        end
      end

      private

      def count_statement(sql, name, started_ns, duration_ns, cached, binds)
        known = @texts[name] || (@texts.size < MOST_TEXTS ? @texts[name] = {} : {})
        text = known[sql]
        text = read(sql, name, known) if text.nil?
        @text = text
        failed = @failed
        @failed = false
        return unless text

        group = text.group
        group = group_of(text) unless group && group.association == @association && group.owner.equal?(@owner)
        return group&.add_cached if cached || group.nil?

        if group.add(started_ns, duration_ns, @naps, failed) then learn(group, text, sql, binds)
        elsif text.write then wrote(text.shape)
        end
        slow(text.shape, duration_ns) if duration_ns >= @slow_ns
      end

      def joined? = @text ? @text.shape.joins? : false

      def count_in_ruby(slow_ns, order)
        singles
        @slow_ns = slow_ns || Float::INFINITY
        @strands = []
        @order = order
        @texts = {}
        @heads = {}
        @loads = {}
        @written = Hash.new(0)
        @around = []
        @naps = @writes = @read = 0
        @failed = false
        @owner = @association = @text = nil
      end

      # What the extension has counted is made groups of when somebody asks; the same ones, unless it has counted more since.
      def own_groups
        return @heads.values.flat_map { |head| chain(head) } unless @native
        return @counted if @counted && @counted_of == @native.told

        @counted_of = @native.told
        @counted = @native.groups.map { |row| Group.counted(*row) }
      end

      def own_loads
        return @loads unless @native

        @native.loads.each_with_object({}) do |(site, model, count, times, order, joined), loads|
          (loads[site] ||= {})[model] = Sum.new(count, times, order, joined)
        end
      end

      # @return [Text, false, nil] none for what is not counted
      def read(sql, name, known)
        fingerprint = Fingerprint.of(sql)
        shape = Shape.of(fingerprint, name)
        return Shape.switches?(fingerprint) ? bulk(Shape.new(fingerprint)) : keep(known, sql, false) if shape.nil?

        return bulk(shape) if shape.write? && Tally.bulk?(shape, sql)

        keep(known, sql, Text.new(nil, sql.hash, shape, shape.write?))
      end

      # A write of many rows at once is what a write loop should become.
      # @return [nil]
      def bulk(shape)
        wrote(shape)
        nil
      end

      # Called by the extension, too, as {#written} and {#slow} are.
      def wrote(shape)
        @writes += 1 unless @native
        @written ||= Hash.new(0)
        @written[shape.table] += 1
      end

      def slow(shape, duration_ns) = singles.slow(shape, duration_ns)

      def keep(known, sql, text)
        return text if @read >= MOST_TEXTS

        @read += 1
        known[sql] = text
      end

      # Values of writes are not compared: that the same was written again is no less a write.
      def learn(group, text, sql, binds)
        if text.write then wrote(text.shape)
        else group.learn(binds ? binds.hash ^ text.number : text.number, written(text.shape), @writes)
        end
        group.pieces&.add(sql, binds)
      end

      # What is written of no known table, as when the schema is switched, may be any.
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
