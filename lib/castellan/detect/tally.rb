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
    # past MOST_TEXTS different texts only known shapes are counted; past MOST_SHAPES nothing new is. One thread's.
    class Tally
      MOST_TEXTS = 2_000
      MOST_SHAPES = 500
      MOST_LOADS = 500
      SEVERAL_ROWS = /\bvalues\b.*\)\s*,\s*\(/mi

      # What is known of one text: its group and a number that stands for it in comparisons.
      Text = Struct.new(:group, :number, :shape, :write)

      # What was loaded of one model at one site, while it is added up.
      Sum = Struct.new(:count, :times, :order, :joined)
      private_constant :Text, :Sum

      def initialize
        @texts = {}
        @heads = {}
        @loads = {}
        @written = Hash.new(0)
        @around = []
        @owner = @association = nil
        @order = 0
        @text = nil
      end

      # Told by {Recording#query}.
      def query(sql, name, started_ns, duration_ns, cached, _rows, binds = nil)
        text = @text = @texts.fetch(sql) { read(sql, name) }
        return if text.nil?

        group = group_of(text) or return
        return group.add_cached if cached

        learn(group, text, binds) if group.add(started_ns, duration_ns)
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
        sum = here[model] || (here[model] = Sum.new(0, 0, @order += 1, joined?))
        sum.count += count
        sum.times += 1
      end

      # @return [Array<Group>] in the order in which they were first seen
      def groups
        @heads.values.flat_map { |head| chain(head) }.sort_by(&:order)
      end

      # @param times [Integer]
      # @return [Boolean] whether any shape was sent that often
      def repeats?(times)
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
        @loads.flat_map do |site, here|
          here.map do |model, sum|
            Load.new(model: model, site: site, root: here.keys.first, **sum.to_h)
          end
        end
      end

      private

      # So ActiveRecord calls the first column of a statement that loads associations by a JOIN.
      def joined? = @text ? @text.shape.fingerprint.include?(" as t0_r0") : false

      # @return [Text, nil] nil for what is not counted
      def read(sql, name)
        shape = Shape.of(Fingerprint.of(sql), name)
        return keep(sql, nil) if shape.nil?

        return bulk(shape) if shape.write? && (shape.listed? || sql.match?(SEVERAL_ROWS))

        text = Text.new(nil, @texts.size, shape, shape.write?)
        text.number = sql.hash if @texts.size >= MOST_TEXTS
        keep(sql, text)
      end

      # A write of many rows at once is what a write loop should become.
      # @return [nil]
      def bulk(shape)
        @written[shape.table] += 1
        nil
      end

      def keep(sql, text)
        @texts.size < MOST_TEXTS ? @texts[sql] = text : text
      end

      # Values of writes are not compared: that the same was written again is no less a write.
      def learn(group, text, binds)
        table = text.shape.table
        return @written[table] += 1 if text.write

        group.learn(binds ? binds.hash ^ text.number : text.number, @written[table])
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
