# frozen_string_literal: true

module Castellan
  module Serializer
    # Writes a declared relationship of a record, and finds the serializer of the related records.
    #
    #   relationship = UserSerializer.relationships_to_serialize[:roles]
    #   relationship.linkage(user, {})   # => [{ id: "1", type: :role }]
    #   relationship.related(user, {})   # => [#<Role>], for `included`
    #
    # Looks up the serializer on first use, because two serializers may refer to each other.
    class DeclaredRelationship
      # @return [Class] the serializer that declares it
      # @return [Symbol] the declared name, the member's name in the document, and
      #   :has_many, :has_one or :belongs_to
      attr_reader :owner, :name, :key, :relationship_type, :id_method_name, :record_type, :object_method_name, :object_block, :serializer,
                  :polymorphic, :conditional_proc, :transform_method, :links, :meta, :lazy_load_data, :cached

      # @param options [Hash] the options of `has_many`
      def initialize(owner:, name:, key:, relationship_type:, transform_method:, object_block: nil, options: {})
        @owner = owner
        @name = name
        @key = key
        @relationship_type = relationship_type
        @transform_method = transform_method
        @object_block = object_block
        @serializer, @record_type, @conditional_proc, @cached, @lazy_load_data =
          options.values_at(:serializer, :record_type, :if, :cached, :lazy_load_data)
        @links = options[:links] || {}
        @meta = options[:meta] || {}
        polymorphic = options[:polymorphic]
        @polymorphic = !Serializer.blank?(polymorphic) && (polymorphic.respond_to?(:keys) ? polymorphic : {})
        @object_method_name = options[:object_method_name] || name
        @given_id_method = options[:id_method_name]
        @id_method_name = @given_id_method || default_id_method
        @linked = !Serializer.blank?(links)
        @described = !Serializer.blank?(meta)
        @serializers = {}
        @types = {}
      end

      def to_many? = relationship_type == :has_many

      # @return [Boolean] whether it has links or a meta object, which only the record can provide
      def linked_by_record? = @linked || @described

      # @return [Boolean] whether it is written as an empty object unless its records are included
      def bare? = lazy_load_data && !linked_by_record?

      # Writes the relationship into the hash, unless its condition is false.
      # @param included [Boolean] whether the related records are included;
      #   if so, even lazy linkage is written
      def serialize(record, included, params, hash)
        return unless include_relationship?(record, params)

        hash[key] = written = {}
        written[:data] = linkage(record, params) || (to_many? ? [] : nil) unless lazy_load_data && !included
        written[:meta] = meta.is_a?(Proc) ? Serializer.call_proc(meta, record, params) : meta if @described
        written[:links] = links_of(record, params) if @linked
      end

      def include_relationship?(record, params) = !conditional_proc || Serializer.call_proc(conditional_proc, record, params)

      # @return [Array<Hash>, Hash, nil] resource identifiers
      def linkage(record, params)
        if (type = static_record_type)
          ids = ids(record, params)
          return ids.respond_to?(:map) ? ids.map { |id| id_hash(id, type) } : id_hash(ids, type)
        end

        objects = fetch_associated_object(record, params)
        return objects.map { |object| identifier(object, params) } if several?(objects)

        identifier(objects, params) if objects
      end

      # @return [Array] the related records
      def related(record, params)
        objects = fetch_associated_object(record, params)
        return objects.to_ary if objects.respond_to?(:to_ary)

        objects.respond_to?(:to_a) && !objects.respond_to?(:each_pair) ? objects.to_a : [objects]
      end

      # @return [Object, nil] the result of the association, method or block
      def fetch_associated_object(record, params)
        object_block ? Serializer.call_proc(object_block, record, params) : record.send(object_method_name)
      end

      # @return [Class] the serializer of one related record
      def serializer_for(record, params)
        return static_serializer if static_serializer
        return Serializer.call_proc(serializer, record, params) if serializer.is_a?(Proc) && !polymorphic

        by_name((polymorphic[record.class] if polymorphic) || record.class.name)
      end

      # @return [Class, nil] nil if it depends on the record
      def static_serializer
        @static_serializer ||= find_serializer
      end

      # @return [Symbol, nil]
      def static_record_type
        return if polymorphic

        @static_record_type ||=
          (record_type || static_serializer&.record_type)&.then { |type| Serializer.transform(type, transform_method) }
      end

      # @return [Boolean] whether its JSON depends on `params`
      def params?
        [object_block, conditional_proc, meta, *(links.values if links.is_a?(Hash))].any? { |block| Serializer.takes_params?(block) }
      end

      private

      def default_id_method
        return :id if object_block || serializer.is_a?(Proc) || polymorphic

        to_many? ? :"#{Inflector.singularize(name.to_s)}_ids" : :"#{name}_id"
      end

      # ActiveRecord's has_one and Sequel's to-many associations have no reader
      # of ids, so the association is loaded.
      def ids(record, params)
        return ids_of(fetch_associated_object(record, params), id_method_name) if object_block
        return record.public_send(id_method_name) if @given_id_method || Serializer.answers?(record, id_method_name) ||
                                                     !record.respond_to?(object_method_name, true) || object_method_name == id_method_name

        ids_of(record.send(object_method_name), :id)
      end

      def ids_of(objects, method)
        return objects.map { |object| object.public_send(method) } if several?(objects)

        objects.public_send(method) if objects.respond_to?(method)
      end

      def identifier(record, params)
        serializer = serializer_for(record, params)
        id_hash(record.public_send(id_method_name), @types[serializer] ||= Serializer.transform(serializer.record_type, transform_method))
      end

      def id_hash(id, type)
        { id: id.to_s, type: type } unless Serializer.blank?(id)
      end

      # A Struct also responds to `map`, but is one record.
      def several?(objects) = objects.respond_to?(:map) && !objects.respond_to?(:each_pair)

      def links_of(record, params)
        return record.public_send(links) if links.is_a?(Symbol)

        links.each_with_object({}) { |(key, method), hash| Member.new(key: key, method: method).serialize(record, params, hash) }
      end

      def find_serializer
        return if polymorphic || serializer.is_a?(Proc)
        return by_name(serializer) if serializer.is_a?(Symbol) || serializer.is_a?(String)

        serializer || (by_name(to_many? ? Inflector.singularize(name.to_s) : name) unless object_block)
      end

      def by_name(name) = @serializers[name] ||= owner.serializer_for(name)
    end
  end
end
