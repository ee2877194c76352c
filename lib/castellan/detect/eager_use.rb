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

      # Statements are not its business.
      def query(_sql, _name, _started_ns, _duration_ns, _cached, _rows); end

      # @return [EagerUse] who notes for a thread that is started meanwhile
      def strand = self

      # Told by {Instrument::EagerInstrument}.
      def preloaded(model, association, records)
        key = [CallSite.current, model, association]
        @loads[key] += records if @loads.size < MOST || @loads.key?(key)
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

      # @yield [site, model, association, records, how]
      def each
        @loads.each do |(site, model, association), records|
          yield site, model, association, records, @used.dig(model, association) unless @passed[[model, association]]
        end
      end
    end
  end
end
