# frozen_string_literal: true

module Castellan
  module Detect
    # Observes one request: which associations it preloads, where, and which of them it uses.
    #
    #   use = EagerUse.new
    #   Instrument.record(use) { User.preload(:posts).each { |user| user.posts.size } }
    #   use.each { |site, model, association, records, read| … }   # read: whether the association was used
    #
    # One request proves nothing, see {Evidence}. Requires {Instrument::EagerInstrument}. Threads of the
    # request are included. Associations that a JOIN loads are not judged, because conditions may need it.
    class EagerUse
      include Enumerable

      MOST = 200

      def initialize
        @loads = Hash.new(0)
        @used = {}
        @passed = {}
      end

      # Called by {Recording#query}.
      def query(*); end

      # @return [EagerUse] the observer of a new thread
      def strand = self

      # Called by {Instrument::EagerInstrument}.
      def preloaded(model, association, records)
        key = [CallSite.current, model, association]
        @loads[key] += records if @loads.size < MOST || @loads.key?(key)
      end

      # Called by {Instrument::EagerInstrument}.
      def passed(model, association)
        @passed[[model, association]] = true
      end

      # Called by {Instrument::EagerInstrument} for each read of an association.
      def used(model, association)
        (@used[model] ||= {})[association] = true
      end

      # @yield [site, model, association, records, read]
      def each
        @loads.each do |(site, model, association), records|
          yield site, model, association, records, !@used.dig(model, association).nil? unless @passed[[model, association]]
        end
      end
    end
  end
end
