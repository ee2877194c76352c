# frozen_string_literal: true

module Castellan
  module Detect
    # The observer of one request that notes which associations were loaded eagerly where, and which were used.
    #
    #   use = EagerUse.new
    #   Instrument.record(use) { User.preload(:posts).each { |user| user.posts.size } }
    #   use.each { |site, model, association, records, how| … }   # how: :read, :counted, or nil: not at all
    #
    # One request proves nothing: see {Evidence}. Needs {Instrument::EagerInstrument}. Threads of the request count with it.
    class EagerUse
      include Enumerable

      MOST = 200

      def initialize
        @loads = Hash.new(0)
        @used = {}
        @passed = {}
      end

      # Told by {Recording#query}: what was sent last may be a JOIN that records are made of.
      def query(sql, _name, _started_ns, _duration_ns, _cached, _rows)
        @sent = sql
      end

      # @return [String, nil] the statement that was sent last
      attr_reader :sent

      # @return [EagerUse] who notes for a thread that is started meanwhile: in the same place, but it sends its own statements
      def strand = dup

      # Told by {Instrument::EagerInstrument}.
      def preloaded(model, association, records)
        key = [CallSite.current, model, association]
        @loads[key] += records if @loads.size < MOST || @loads.key?(key)
      end

      # Told by {Instrument::EagerInstrument} of associations that came with the records by one JOIN. Where that takes part in the choice or
      # the order of the records it is there for that.
      # @param sent [String, nil] the statement; meanwhile callbacks of the records may have sent others
      def graphed(associations, records, sent)
        return if records.zero?

        needed = !loads_only?(Fingerprint.of(sent.to_s))
        associations.each do |model, association|
          preloaded(model, association, records)
          used(model, association, :read) if needed
        end
      end

      # Told by {Instrument::EagerInstrument}.
      def passed(model, association)
        @passed[[model, association]] = true
      end

      # Told by {Instrument::EagerInstrument}. Whoever read it once has read it.
      def used(model, association, how)
        known = @used[model] ||= {}
        known[association] = how unless known[association] == :read
      end

      # @return [Boolean] whether nobody has read it
      def unread?(model, association) = @used.dig(model, association) != :read

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

      # Whether all that follows the joins is said of the columns of the first table, each named with it.
      def loads_only?(fingerprint)
        table, joins, rest = fingerprint.match(FROM)&.captures
        return false if table.nil? || selects_more?(fingerprint) || joins.match?(/(?<!left outer) join /)

        !rest.to_s.gsub(/\b(?:\w+\.)?#{Regexp.escape(table)}\.\w+/, "").gsub(WORDS, "").match?(/[a-z_]/)
      end

      # Whether something is selected besides the columns that ActiveRecord makes the records of.
      def selects_more?(fingerprint)
        selected = fingerprint[/\Aselect (.*?) from /m, 1].to_s.split(", ")
        selected.partition { |one| one.match?(/ as t\d+_r\d+\z/) }.none?(&:empty?)
      end
    end
  end
end
