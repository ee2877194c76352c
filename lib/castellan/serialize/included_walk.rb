# frozen_string_literal: true

module Castellan
  module Serialize
    # Finds the records that a document includes: each once, after the records that it includes itself.
    #
    #   walk = IncludedWalk.new { |place, record, visit| visit.call(inner, related, "7") }
    #   walk.from(place, record)
    #   walk.found   # => [#<Found record=related places=[inner]>]
    #
    # A *place* is one step of the include path with the type of its records
    # (`type`). A record is visited once per place.
    class IncludedWalk
      # An included record and the places where it was found, in document order.
      Found = Struct.new(:record, :places)

      # @return [Array<Found>] in document order
      attr_reader :found

      # @param primary [Array<Array(Object, String)>] type and id of the
      #   primary records, which are never included
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

      # Visits the records that a primary record includes.
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
