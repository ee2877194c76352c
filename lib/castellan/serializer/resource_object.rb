# frozen_string_literal: true

module Castellan
  module Serializer
    # Writes resource objects of one serializer as hashes. Chooses once what is the same for all records of a document.
    #
    #   objects = ResourceObject.new(UserSerializer, [:email], {}, [:roles])
    #   objects.call(user)   # => { id: "1", type: :user, attributes: { email: "ada@example.com" }, relationships: {} }
    class ResourceObject
      # @param fieldset [Array<Symbol>, nil] keys of attributes and names of relationships
      # @param params [Hash]
      # @param included [Array<Symbol>] the relationships whose records are included
      def initialize(serializer, fieldset, params, included = [])
        @serializer = serializer
        @fieldset = fieldset
        @params = params
        @type = serializer.record_type
        @included = included
        @attributes = chosen(serializer.attributes_to_serialize)
        @relationships = chosen(serializer.relationships_to_serialize)
        @links = serializer.data_links unless Serializer.blank?(serializer.data_links)
        @meta = serializer.meta_to_serialize unless Serializer.blank?(serializer.meta_to_serialize)
        @store = serializer.cache_store_instance
        @cached, @uncached = divided(serializer.relationships_to_serialize.values) if @store && @relationships
      end

      # @return [Hash]
      def call(record)
        object = @store ? kept(record) : written(record, @relationships)
        object[:meta] = meta(record) if @meta
        object
      end

      private

      def attributes(record)
        @attributes.each_with_object({}) { |attribute, hash| attribute.serialize(record, @params, hash) }
      end

      def relationships(record, relationships)
        relationships.each_with_object({}) do |relationship, hash|
          relationship.serialize(record, @included.include?(relationship.name), @params, hash)
        end
      end

      def links(record)
        @links.each_value.with_object({}) { |link, hash| link.serialize(record, @params, hash) }
      end

      def meta(record)
        case @meta
        when Proc then Serializer.call_proc(@meta, record, @params)
        when Hash then @meta
        else record.public_send(@meta)
        end
      end

      def chosen(members)
        return if Serializer.blank?(members)

        @fieldset ? members.slice(*@fieldset).values : members.values
      end

      def kept(record)
        @keeping = keeping unless defined?(@keeping)
        return written(record, @relationships) unless @keeping

        object = @store.fetch(record, **@keeping) { written(record, @cached) }
        return object.dup unless @uncached

        object.merge(relationships: (object[:relationships] || {}).merge(relationships(record, @uncached)))
      end

      # A list is nil only where none of its kind is declared: where the fields leave none, jsonapi-serializer writes an empty object.
      def divided(declared)
        declared.partition(&:cached).map { |some| some & @relationships if some.any? }
      end

      # The same for all records, and of the `params` as they were given: blocks may keep in them what they found.
      def keeping
        @serializer.record_cache_options(@serializer.cache_store_options, @fieldset, @included, @params)
      end

      def written(record, relationships)
        object = identified(record)
        object[:attributes] = attributes(record) if @attributes
        object[:relationships] = relationships(record, relationships) if relationships
        object[:links] = links(record) if @links
        object
      end

      def identified(record)
        id = @serializer.id_from_record(record, @params)
        { id: Serializer.blank?(id) ? nil : id.to_s, type: @type }
      end
    end
  end
end
