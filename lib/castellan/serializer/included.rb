# frozen_string_literal: true

module Castellan
  module Serializer
    # The included records of a document, each with the linkage of all the paths that it was reached by.
    #
    #   Included.new(options).of(UserSerializer, users)   # => [{ id: "1", type: :role, … }]
    #
    # Collects the records first and writes them afterwards, because a later path may include another lazy relationship of a record.
    class Included
      # One step of the include, for the records of one serializer.
      Place = Struct.new(:serializer, :type, :tree)
      private_constant :Place

      # @param options [Options]
      def initialize(options)
        @options = options
        @params = options.params
        @places = Hash.new { |places, tree| places[tree] = {}.compare_by_identity }.compare_by_identity
        @writers = {}
      end

      # @return [Array<Hash>] resource objects
      def of(serializer, records)
        walk = Serialize::IncludedWalk.new { |place, record, visit| related(place, record, visit) }
        records.each { |record| walk.from(Place.new(serializer, nil, @options.tree), record) }
        walk.found.map { |found| writer(found.places).call(found.record) }
      end

      private

      def related(place, record, visit)
        place.tree.each do |name, below|
          relationship = place.serializer.relationships_to_serialize&.[](name)
          next unless relationship&.include_relationship?(record, @params)

          relationship.related(record, @params).each do |other|
            inner = place(relationship, relationship.serializer_for(other, @params), below)
            visit.call(inner, other, inner.serializer.id_from_record(other, @params).to_s)
          end
        end
      end

      def place(relationship, serializer, tree)
        @places[tree][serializer] ||= Place.new(serializer, relationship.static_record_type || serializer.record_type, tree)
      end

      def writer(places)
        first = places.first
        names = places.size == 1 ? first.tree.keys : places.flat_map { |place| place.tree.keys }.uniq
        @writers[[first.serializer, first.type, names]] ||=
          ResourceObject.new(first.serializer, @options.fieldset(first.type), @params, names)
      end
    end
  end
end
