# frozen_string_literal: true

module Castellan
  module Serializer
    # Builds the {Resource} that reads one serializer's records as rows of one model.
    #
    #   translation = Translation.for(UserSerializer, User)
    #   translation.resource                   # => a Castellan::Resource with `translation`
    #   translation.obstacle([:roles, :posts]) # => "writes posts, and its block takes the record"
    #
    # Members are named by their keys. An attribute without a column becomes a block that takes the record, so
    # the type is loaded through models. Built once per serializer and model; later declarations discard it.
    class Translation
      # @return [Class]
      # @return [Object] the rows adapter of the model
      attr_reader :serializer, :adapter

      # @param model [Class] an ActiveRecord or Sequel model
      # @return [Translation]
      # @raise [DeclarationError] for a model that cannot be read as rows
      def self.for(serializer, model)
        known = serializer.instance_variable_get(:@castellan_translations) ||
                serializer.instance_variable_set(:@castellan_translations, {}.compare_by_identity)
        known[model] ||= new(serializer, model)
      end

      def initialize(serializer, model)
        serializer.record_type!
        @serializer = serializer
        @adapter = Rows.for(model)
        @attributes = serializer.attributes_to_serialize || {}
        @relationships = serializer.relationships_to_serialize || {}
        @reasons = {}
      end

      # @return [Symbol, nil] the id's column; nil if only the record can return the id
      def id_column
        return @id_column if defined?(@id_column)

        name = serializer.record_id || adapter.primary_key
        overridden = serializer.method(:id_from_record).owner != ClassMethods ||
                     (serializer.record_id.nil? && adapter.model.instance_method(:id).owner == adapter.model)
        @id_column = (name.to_sym if !overridden && name.respond_to?(:to_sym) && identifies?(name.to_sym))
      end

      # @param names [Array<Symbol>] the attributes and relationships that are written or included
      # @return [String, nil] why rows cannot write a document with them
      def obstacle(names)
        return "its id is not a column that the model reads as it is" unless id_column
        return "its links are made of the record" unless Serializer.blank?(serializer.data_links)
        return "its meta is made of the record" unless Serializer.blank?(serializer.meta_to_serialize)

        names.each { |name| (reason = reason(name)) && (return "writes #{name}, and #{reason}") }
        nil
      end

      # @return [Translation] for a relationship's serializer and model
      def related(name)
        relationship = @relationships.fetch(name)
        Translation.for(relationship.static_serializer, adapter.association(relationship.object_method_name.to_sym).model)
      end

      # @return [Class] a resource with the members that rows can write
      def resource
        @resource ||= declare
      end

      # @return [String, nil] why a method needs the record; nil for a column or a block
      def method_reason(key)
        name = @attributes[key]&.column&.to_sym or return
        return "#{name} is neither a column nor an association of #{adapter.table}" unless adapter.columns.include?(name)

        "#{name} is private" if adapter.model.private_method_defined?(name)
      end

      private

      def identifies?(column) = adapter.columns.include?(column) && adapter.types.identifies?(column)

      def reason(name)
        @reasons.fetch(name) { @reasons[name] = find_reason(@relationships[name] || @attributes.fetch(name)) }
      rescue DeclarationError, NameError => error # a serializer is missing; rendering records then raises jsonapi-serializer's error
        @reasons[name] = error.message
      end

      def find_reason(member)
        return "its condition takes the record" if member.conditional_proc
        return if member.is_a?(Member)
        return "an attribute has the same name" if @attributes.key?(member.key.to_sym)
        return "its block takes the record" if member.object_block
        return "its links or meta are made of the record" if member.linked_by_record?

        name = member.object_method_name.to_sym
        association = adapter.association(name) or return "#{name} is not an association of #{adapter.table}"
        return "#{name} is read by a method of the model's own" unless generated?(name)

        related_reason(member, association)
      end

      def related_reason(relationship, association)
        target = relationship.static_serializer
        return "its records are of several types" unless association.model && target.is_a?(ClassMethods)
        return "#{association.name} is a #{association.macro}" unless association.to_many? == relationship.to_many?
        return "its linkage has the type #{relationship.static_record_type}" unless relationship.static_record_type == target.record_type

        id = related(relationship.name).id_column or return "the id of a related record is not a column"
        method = relationship.id_method_name.to_sym
        linked = association.macro == :belongs_to ? key?(method, association, id) : ids?(method, relationship, association, id)
        "the linked ids come from the method #{method}" unless linked
      end

      def key?(method, association, id)
        method == association.owner_key && association.foreign_key_of?(id) && identifies?(method)
      end

      # ActiveRecord defines a reader of ids for collections; Sequel and has_one do not.
      def ids?(method, relationship, association, id)
        name = relationship.object_method_name
        own = relationship.to_many? ? :"#{Inflector.singularize(name.to_s)}_ids" : :"#{name}_id"
        return false if id != association.adapter.primary_key || method != own || adapter.columns.include?(method)

        generated?(method) || !(adapter.model.method_defined?(method) || adapter.model.private_method_defined?(method))
      end

      def generated?(method)
        return false unless adapter.model.method_defined?(method)

        owner = adapter.model.instance_method(method).owner
        !owner.is_a?(Class) && (owner.name.nil? || owner.name.end_with?("GeneratedAssociationMethods", "@overridable_methods_module"))
      end

      def declare
        translation = self
        resource = Class.new(Castellan::Resource) do
          define_singleton_method(:name) { translation.serializer.name }
          define_singleton_method(:translation) { translation }
          model translation.adapter.model
          type translation.serializer.record_type
          id translation.id_column
          key_transform :none
        end
        @attributes.each_value { |attribute| declare_attribute(resource, attribute) unless reason(attribute.key) }
        @relationships.each_value { |relationship| declare_relationship(resource, relationship) unless reason(relationship.name) }
        resource
      end

      def declare_relationship(resource, relationship)
        resource.public_send(relationship.relationship_type, relationship.key.to_sym, from: relationship.object_method_name,
                                                                                      resource: -> { related(relationship.name).resource })
      end

      def declare_attribute(resource, attribute)
        key = attribute.key
        return resource.attribute(key, from: attribute.from.join("."), as_stored: attribute.as_stored) if attribute.from

        column = attribute.column&.to_sym
        if column.nil? || method_reason(key)
          resource.attribute(key, preloads: attribute.preloads) { |record, params| attribute.value(record, params) }
        else
          resource.attribute(key, from: (column.name unless column == key), as_stored: attribute.as_stored)
        end
      end
    end
  end
end
