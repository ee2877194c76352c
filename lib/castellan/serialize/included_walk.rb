# frozen_string_literal: true

module Castellan
  module Serialize
    # Finds the records that a document includes: each once, after those that it includes itself.
    #
    #   walk = IncludedWalk.new { |place, record, visit| visit.call(inner, related, "7") }
    #   walk.from(place, record)
    #   walk.found   # => [#<Found record=related places=[inner]>]
    #
    # A *place* is one step of the include with the type of its records (`type`); a record is walked once at each place.
    class IncludedWalk
      # An included record and the places at which it was reached, in the order of the document.
      Found = Struct.new(:record, :places)

      # @return [Array<Found>] in the order of the document
      attr_reader :found

      # @param primary [Array<Array(Object, String)>] type and id of the primary records, which must not be included again
      # @yieldparam place [#type]
      # @yieldparam record [Object]
      # @yieldparam visit [Method] call it with the place, record and id of each related record
      def initialize(primary = [], &related)
        @related = related
        @visit = method(:visit)
        @walked = Hash.new { |walked, place| walked[place] = {} }.compare_by_identity
        @known = Hash.new { |known, other| known[other] = {} }
        itself = Found.new(nil, [])
        primary.each { |type, id| @known[type][id] = itself }
        @found = []
      end

      # Walks what a primary record leads to.
      def from(place, record)
        @related.call(place, record, @visit)
      end

      private

      def visit(place, record, id)
        return if @walked[place][id]

        @walked[place][id] = true
        from(place, record)
        known = @known[place.type]
        return known[id].places << place if known.key?(id)

        @found << (known[id] = Found.new(record, [place]))
      end
    end
  end
end
