# frozen_string_literal: true

module Castellan
  module Serializer
    # Converts records to resource objects (Hashes) with one serializer.
    #
    #   objects = RecordObjects.new(UserSerializer, options)
    #   objects.call(user)         # => { id: "1", type: :user, attributes: { email: "ada@example.com" } }
    #   objects.included([user])   # => [{ id: "3", type: :role, … }]
    class RecordObjects
      # One step of the include path, for the records of one serializer.
      Place = Struct.new(:serializer, :type, :tree)
      private_constant :Place

      # @param options [DocumentOptions]
      # @param type [Symbol] the type whose fields are written
      # @param included [Array<Symbol>] the relationships whose records are included
      def initialize(serializer, options, type: serializer.record_type, included: options.tree.keys)
        @serializer = serializer
        @options = options
        @params = options.params
        @fieldset = options.fieldset(type)
        @included = included
        @attributes, @relationships = [serializer.attributes_to_serialize, serializer.relationships_to_serialize].map do |members|
          options.chosen(type, members).values unless Serializer.blank?(members)
        end
        @links = serializer.data_links unless Serializer.blank?(serializer.data_links)
        @meta = serializer.meta_to_serialize unless Serializer.blank?(serializer.meta_to_serialize)
        @store = serializer.cache_store_instance
        @cached, @uncached = divided(serializer.relationships_to_serialize.values) if @store && @relationships
      end

      # @return [Hash]
      def call(record)
        object = @store ? cached(record) : write(record, @relationships)
        object[:meta] = meta(record) if @meta
        object
      end

      # Collects all related records first, because a later path may include a
      # lazy relationship of an earlier record.
      # @return [Array<Hash>] the resource objects of the included records
      def included(records)
        @places = Hash.new { |places, tree| places[tree] = {}.compare_by_identity }.compare_by_identity
        walk = Serialize::IncludedWalk.new { |place, record, visit| related(place, record, visit) }
        records.each { |record| walk.from(Place.new(@serializer, nil, @options.tree), record) }
        @writers = {}
        walk.found.map { |found| writer(found.places).call(found.record) }
      end

      private

      def write(record, relationships)
        id = @serializer.id_from_record(record, @params)
        object = { id: Serializer.blank?(id) ? nil : id.to_s, type: @serializer.record_type }
        object[:attributes] = members(@attributes, record) if @attributes
        object[:relationships] = linkages(record, relationships) if relationships
        object[:links] = members(@links.values, record) if @links
        object
      end

      def members(members, record) = members.each_with_object({}) { |member, hash| member.serialize(record, @params, hash) }

      def linkages(record, relationships)
        relationships.each_with_object({}) do |relationship, hash|
          relationship.serialize(record, @included.include?(relationship.name), @params, hash)
        end
      end

      def meta(record)
        case @meta
        when Proc then Serializer.call_proc(@meta, record, @params)
        when Hash then @meta
        else record.public_send(@meta)
        end
      end

      def cached(record)
        # Computed once from the original `params`, because blocks may add values to them.
        @cache_options ||= [@serializer.record_cache_options(@serializer.cache_store_options, @fieldset, @included, @params)]
        return write(record, @relationships) unless @cache_options.first

        object = @store.fetch(record, **@cache_options.first) { write(record, @cached) }
        return object.dup unless @uncached

        object.merge(relationships: (object[:relationships] || {}).merge(linkages(record, @uncached)))
      end

      # Returns nil without declared members of a kind. If the fields omit all
      # of them, jsonapi-serializer writes {}.
      def divided(declared)
        declared.partition(&:cached).map { |some| some & @relationships if some.any? }
      end

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
        serializer, type = places.first.deconstruct
        names = places.flat_map { |place| place.tree.keys }.uniq
        @writers[[serializer, type, names]] ||= RecordObjects.new(serializer, @options, type: type, included: names)
      end
    end
  end
end
