# frozen_string_literal: true

module Castellan
  module Detect
    # Observes one request: which associations it loads eagerly, where, and which of them it uses.
    #
    #   use = EagerUse.new
    #   Instrument.record(use) { User.preload(:posts).each { |user| user.posts.size } }
    #   use.each { |site, model, association, records, how| … }   # how: :read, :counted, or nil if unused
    #
    # One request proves nothing, see {Evidence}. Requires {Instrument::EagerInstrument}. Threads of the
    # request are included.
    class EagerUse
      include Enumerable

      MOST = 200

      def initialize
        @loads = Hash.new(0)
        @used = {}
        @passed = {}
        @joins = []
      end

      # Called by {Recording#query}. Keeps the last statement, because ActiveRecord may instantiate records
      # from its JOIN.
      def query(sql, _name, _started_ns, _duration_ns, _cached, _rows, _binds = nil)
        @sent = sql
      end

      # @return [EagerUse] the observer of a new thread: shares the loads, but keeps its own last statement
      def strand = dup.tap { |copy| copy.instance_variable_set(:@joins, []) }

      # Called by {Instrument::EagerInstrument}.
      def preloaded(model, association, records)
        key = [CallSite.current, model, association]
        @loads[key] += records if @loads.size < MOST || @loads.key?(key)
      end

      # Called by {Instrument::EagerInstrument} before records are made of a JOIN: their callbacks may send other
      # statements.
      def graphing = @joins.push(@sent)

      # Called by {Instrument::EagerInstrument} for associations that one JOIN loaded together with their
      # records. If the JOIN also filters or orders the records, the association counts as used.
      def graphed(associations, records)
        join = @joins.pop
        return if records.zero?

        needed = !loads_only?(Fingerprint.of(join.to_s))
        associations.each do |model, association|
          preloaded(model, association, records)
          used(model, association, :read) if needed
        end
      end

      # Called by {Instrument::EagerInstrument}.
      def passed(model, association)
        @passed[[model, association]] = true
      end

      # Called by {Instrument::EagerInstrument}. A read is final: a later count does not replace it.
      def used(model, association, how)
        known = @used[model] ||= {}
        known[association] = how unless known[association] == :read
      end

      # @yield [site, model, association, records, how]
      def each
        @loads.each do |(site, model, association), records|
          yield site, model, association, records, @used.dig(model, association) unless @passed[[model, association]]
        end
      end

      FROM = / from (?:\w+\.)?(\w+)(?: as \w+)? (left outer join .*?)(?: (?:where|group by|order by|limit) (.*))?\z/m
      WORDS = /\b(?:where|and|or|not|in|is|null|true|false|between|like|ilike|escape|any|
                   order|group|by|asc|desc|nulls|first|last|limit|offset)\b/x
      private_constant :FROM, :WORDS

      private

      # Whether all clauses after the joins mention only qualified columns of the first table.
      def loads_only?(fingerprint)
        table, joins, rest = fingerprint.match(FROM)&.captures
        return false if table.nil? || selects_more?(fingerprint) || joins.match?(/(?<!left outer) join /)

        !rest.to_s.gsub(/\b(?:\w+\.)?#{Regexp.escape(table)}\.\w+/, "").gsub(WORDS, "").match?(/[a-z_]/)
      end

      # Whether the statement selects more than the columns of ActiveRecord's records.
      def selects_more?(fingerprint)
        selected = fingerprint[/\Aselect (.*?) from /m, 1].to_s.split(", ")
        selected.partition { |one| one.match?(/ as t\d+_r\d+\z/) }.none?(&:empty?)
      end
    end
  end
end
