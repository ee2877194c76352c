# frozen_string_literal: true

module Castellan
  module Serializer
    # One declared relationship: how its linkage is made of a record, and which serializer writes the related records.
    #
    #   relationship = UserSerializer.relationships_to_serialize[:roles]
    #   relationship.linkage(user, {})   # => [{ id: "1", type: :role }]
    #   relationship.related(user, {})   # => [#<Role>], for `included`
    #
    # The serializer is looked up when it is first needed, because two may name each other.
    class Relationship
      # @return [Class] the serializer that declares it
      # @return [Symbol] its name, and :has_many, :has_one or :belongs_to
      # @return [Symbol] the member's name in the document
      attr_reader :owner, :name, :key, :relationship_type, :id_method_name, :record_type, :object_method_name, :object_block, :serializer,
                  :polymorphic, :conditional_proc, :transform_method, :links, :meta, :lazy_load_data, :cached, :preloads

      # @param options [Hash] as `has_many` took them
      def initialize(owner:, name:, key:, relationship_type:, transform_method:, object_block: nil, options: {})
        @owner = owner
        @name = name
        @key = key
        @relationship_type = relationship_type
        @transform_method = transform_method
        @object_block = object_block
        options.values_at(:serializer, :record_type, :if, :cached, :lazy_load_data).then do |values|
          @serializer, @record_type, @conditional_proc, @cached, @lazy_load_data = values
        end
        read(options)
        @linked = !Blank.blank?(links)
        @described = !Blank.blank?(meta)
        @serializers = {}
        @types = {}
      end

      # @return [Boolean]
      def to_many?
        relationship_type == :has_many
      end

      # Writes the relationship into the hash, unless its condition says no.
      # @param included [Boolean] whether the related records are included: then even lazy linkage is written
      def serialize(record, included, params, hash)
        return if conditional_proc && !include_relationship?(record, params)

        hash[key] = written = {}
        written[:data] = linkage(record, params) || (to_many? ? [] : nil) unless lazy_load_data && !included
        written[:meta] = meta.is_a?(Proc) ? Serializer.call_proc(meta, record, params) : meta if @described
        written[:links] = links_of(record, params) if @linked
      end

      # @return [Boolean]
      def include_relationship?(record, params)
        !conditional_proc || Serializer.call_proc(conditional_proc, record, params)
      end

      # @return [Array<Hash>, Hash, nil] resource identifiers
      def linkage(record, params)
        return of_ids(ids(record, params), static_record_type) if static_record_type

        objects = fetch_associated_object(record, params)
        return unless objects
        return identifier(objects, params) unless several?(objects)

        objects.map { |object| identifier(object, params) }
      end

      # @return [Array] the related records
      def related(record, params)
        objects = fetch_associated_object(record, params)
        return objects.to_ary if objects.respond_to?(:to_ary)

        objects.respond_to?(:to_a) && !one_with_members?(objects) ? objects.to_a : [objects]
      end

      # @return [Object, nil] what the association, the method or the block answers
      def fetch_associated_object(record, params)
        object_block ? Serializer.call_proc(object_block, record, params) : record.send(object_method_name)
      end

      # @return [Class] the serializer of one related record
      def serializer_for(record, params)
        static = @static_serializer || static_serializer
        return static if static
        return by_name((polymorphic[record.class] if polymorphic.is_a?(Hash)) || record.class.name) if polymorphic
        return Serializer.call_proc(serializer, record, params) if serializer.is_a?(Proc)

        by_name(record.class.name)
      end

      # @return [Class, nil] nil where it depends on the record
      def static_serializer
        @static_serializer ||= find_serializer
      end

      # @return [Symbol, nil]
      def static_record_type
        @static_record_type ||= find_type
      end

      # @return [Boolean] whether what it writes depends on what is given as `params`
      def params?
        [object_block, conditional_proc, meta, *(links.values if links.is_a?(Hash))].any? do |block|
          block.is_a?(Proc) && block.arity >= 0 && block.parameters.size > 1
        end
      end

      private

      def read(options)
        @links = options[:links] || {}
        @meta = options[:meta] || {}
        @preloads = Preloading.list(options[:preloads])
        @polymorphic = polymorphic_of(options[:polymorphic])
        @object_method_name = options[:object_method_name] || name
        @given_id_method = options[:id_method_name]
        @id_method_name = @given_id_method || default_id_method
      end

      def polymorphic_of(option)
        return false if Blank.blank?(option)

        option.respond_to?(:keys) ? option : {}
      end

      def default_id_method
        return :id if object_block || serializer.is_a?(Proc) || polymorphic

        to_many? ? :"#{Inflector.singularize(name.to_s)}_ids" : :"#{name}_id"
      end

      def ids(record, params)
        return ids_of_block(Serializer.call_proc(object_block, record, params)) if object_block
        return record.public_send(id_method_name) if @given_id_method || Serializer.answers?(record, id_method_name)

        ids_of_association(record)
      end

      def ids_of_block(objects)
        several?(objects) ? objects.map { |object| object.public_send(id_method_name) } : attempt(objects, id_method_name)
      end

      # A has_one of ActiveRecord and a to-many of Sequel have no such method: the association itself is asked.
      def ids_of_association(record)
        return record.public_send(id_method_name) unless record.respond_to?(object_method_name,
                                                                            true) && object_method_name != id_method_name

        objects = record.send(object_method_name)
        several?(objects) ? objects.map(&:id) : attempt(objects, :id)
      end

      def attempt(object, name)
        object.public_send(name) if object.respond_to?(name)
      end

      def of_ids(ids, type = static_record_type)
        return ids.map { |id| id_hash(id, type) } if to_list?(ids)

        id_hash(ids, type)
      end

      def to_list?(ids)
        ids.respond_to?(:map)
      end

      def identifier(record, params)
        id_hash(record.public_send(id_method_name), type_of(record, params))
      end

      def type_of(record, params)
        serializer = serializer_for(record, params)
        @types[serializer] ||= Names.transform(serializer.record_type, transform_method)
      end

      def id_hash(id, type)
        { id: id.to_s, type: type } unless Blank.blank?(id)
      end

      # A Struct is a list of its values to Ruby, and one record to whoever relates it.
      def several?(objects)
        objects.respond_to?(:map) && !one_with_members?(objects)
      end

      def one_with_members?(object)
        object.respond_to?(:each_pair)
      end

      def links_of(record, params)
        return record.public_send(links) if links.is_a?(Symbol)

        links.each_with_object({}) { |(key, method), hash| Member.new(key: key, method: method).serialize(record, params, hash) }
      end

      def find_serializer
        return if polymorphic || serializer.is_a?(Proc)
        return by_name(serializer) if serializer.is_a?(Symbol) || serializer.is_a?(String)
        return serializer if serializer
        return if object_block

        by_name(to_many? ? Inflector.singularize(name.to_s) : name)
      end

      def find_type
        return if polymorphic

        type = record_type || static_serializer&.record_type
        type && Names.transform(type, transform_method)
      end

      def by_name(name)
        @serializers[name] ||= owner.serializer_for(name)
      end
    end
  end
end
