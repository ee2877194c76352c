# frozen_string_literal: true

module Castellan
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
    class Tally
      MOST_TEXTS = 2_000
      MOST_SHAPES = 500
      MOST_LOADS = 500
      MOST_STRANDS = 500
      SEVERAL_ROWS = /\bvalues\b.*\)\s*,\s*\(/mi

      # What is known of one text: its group and a number that stands for it in comparisons.
      Text = Struct.new(:group, :number, :shape, :write)

      # What was loaded of one model at one site, while it is added up.
      Sum = Struct.new(:count, :times, :order, :joined) do
        def plus(other) = self.class.new(count + other.count, times + other.times, [order, other.order].min, joined || other.joined)
      end
      private_constant :Text, :Sum

      SLOW_NS = 500_000_000

      # @return [Singles] statements that are findings by themselves
      attr_reader :singles

      # @param slow_ns [Integer, nil] from how long one statement is slow; nil: none is
      # @param order [Integer] how much had been seen before
      def initialize(slow_ns: SLOW_NS, order: 0)
        @singles = Singles.new(slow_ns: slow_ns)
        @slow_ns = slow_ns || Float::INFINITY
        @texts = {}
        @heads = {}
        @loads = {}
        @written = Hash.new(0)
        @around = []
        @naps = @writes = 0
        @owner = @association = nil
        @order = order
        @text = nil
        @strands = []
      end

      # @return [Tally] for a thread that is started now
      def strand
        return @strands.last if @strands.size >= MOST_STRANDS

        Tally.new(slow_ns: @singles.slow_ns, order: @order).tap { |strand| @strands << strand }
      end

      # Told by {Recording#query}.
      def query(sql, name, started_ns, duration_ns, cached, _rows, binds = nil)
        text = @texts[sql]
        text = read(sql, name) if text.nil?
        @text = text
        return unless text

        group = text.group
        group = group_of(text) unless group && group.association == @association && group.owner.equal?(@owner)
        return group&.add_cached if cached || group.nil?

        learn(group, text, sql, binds) if group.add(started_ns, duration_ns, @naps)
        @singles.slow(text.shape, duration_ns) if duration_ns >= @slow_ns
      end

      # Told by {Recording#enter}.
      def enter(owner, association)
        @around.push(@owner, @association)
        @owner = owner
        @association = association
      end

      # Told by {Recording#leave}.
      def leave
        @association = @around.pop
        @owner = @around.pop
      end

      # Told by {Recording#loaded}.
      def loaded(model, count, site)
        here = @loads[site] || (@loads.size < MOST_LOADS ? @loads[site] = {} : return)
        model = model.to_s # a class may have no name
        sum = here[model] || (here[model] = Sum.new(0, 0, @order += 1, joined?))
        sum.count += count
        sum.times += 1
      end

      # Told by {Recording#slept}.
      def slept
        @naps += 1
      end

      # Told by {Instrument} of records that came by a JOIN.
      # @param names [Hash] the tree of associations that came with them
      def joined(model, rows, records, names)
        @singles.wide(@text.shape, model, rows, records, names) if @text
      end

      # @return [Array<Finding>] of single statements, those of all threads
      def single_findings = @strands.map { |strand| strand.singles }.reduce(@singles, :merge).findings

      # @return [Array<Group>] in the order in which they were first seen
      def groups
        own = @heads.values.flat_map { |head| chain(head) }
        return own.sort_by(&:order) if @strands.empty?

        all = (own + @strands.flat_map(&:groups)).group_by { |group| [group.shape.fingerprint, group.owner, group.association] }
        all.values.map { |same| same.reduce(:merge) }.sort_by(&:order)
      end

      # @param times [Integer]
      # @return [Boolean] whether any shape was sent that often
      def repeats?(times)
        return groups.any? { |group| group.count >= times } if @strands.any?

        @heads.each_value do |group|
          while group
            return true if group.count >= times

            group = group.next
          end
        end
        false
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

      # So ActiveRecord calls the first column of a statement that loads associations by a JOIN.
      def joined? = @text ? @text.shape.fingerprint.include?(" as t0_r0") : false

      # @return [Text, false, nil] none for what is not counted
      def read(sql, name)
        shape = Shape.of(Fingerprint.of(sql), name)
        return keep(sql, false) if shape.nil?

        return bulk(shape) if shape.write? && (shape.bulk? || sql.match?(SEVERAL_ROWS))

        text = Text.new(nil, @texts.size, shape, shape.write?)
        text.number = sql.hash if @texts.size >= MOST_TEXTS
        keep(sql, text)
      end

      # A write of many rows at once is what a write loop should become.
      # @return [nil]
      def bulk(shape)
        wrote(shape)
        nil
      end

      def wrote(shape)
        @writes += 1
        @written[shape.table] += 1
      end

      def keep(sql, text)
        @texts.size < MOST_TEXTS ? @texts[sql] = text : text
      end

      # Values of writes are not compared: that the same was written again is no less a write.
      def learn(group, text, sql, binds)
        return wrote(text.shape) if text.write

        group.learn(binds ? binds.hash ^ text.number : text.number, written(text.shape), @writes)
        group.pieces&.add(sql, binds)
      end

      def written(shape)
        tables = shape.tables
        tables.size == 1 ? @written[tables.first] : tables.sum { |table| @written[table] }
      end

      def group_of(text)
        group = text.group ||= head(text.shape, @owner, @association)
        until group.nil? || group.through?(@owner, @association)
          group = group.next ||= Group.new(text.shape, @owner, @association, @order += 1)
        end
        group
      end

      def head(shape, owner, association)
        known = @heads[shape.fingerprint]
        return known if known || @heads.size >= MOST_SHAPES

        @heads[shape.fingerprint] = Group.new(shape, owner, association, @order += 1)
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
