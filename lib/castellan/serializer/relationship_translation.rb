# frozen_string_literal: true

module Castellan
  module Serializer
    # Decides how much of one relationship can be read from rows.
    #
    # | question  | so that                                                          |
    # |-----------|------------------------------------------------------------------|
    # | `walks?`  | the related records can be read from rows                        |
    # | `links?`  | the linkage can be: the ids are those that the record would tell |
    # | `reason`  | nil where the whole member can be written from rows              |
    #
    #   RelationshipTranslation.new(relationship, UserSerializer, adapter).reason   # => "its links are made of the record"
    class RelationshipTranslation
      class << self
        # @return [Symbol, nil] the column whose value a serializer writes as the id; nil where only the record knows it
        def id_column(serializer, adapter)
          return unless serializer.method(:id_from_record).owner == ClassMethods # else the serializer has its own way

          name = serializer.record_id || adapter.primary_key
          return unless name.respond_to?(:to_sym) && MemberTranslation.id?(name.to_sym, adapter)

          name.to_sym if serializer.record_id || id_reader_of_the_orm?(adapter)
        end

        def id_reader_of_the_orm?(adapter)
          adapter.model.instance_method(:id).owner != adapter.model
        end
        private :id_reader_of_the_orm?

        # @param relationships [Array<Relationship>]
        # @return [Symbol, nil] what makes of all their names their keys
        def key_transform(relationships)
          Resource::KeyTransform.names.find do |way|
            relationships.all? { |one| Resource::KeyTransform.call(one.name, way) == one.key.to_s }
          end
        end
      end

      # @return [String, nil] why the whole member cannot be written from rows
      attr_reader :reason

      def initialize(relationship, serializer, adapter)
        @relationship = relationship
        @serializer = serializer
        @adapter = adapter
        @association = find_association
        @obstacle = obstacle
        @unlinked = @obstacle || unlinked
        @reason = @unlinked || unwritten
      end

      # @return [Symbol]
      def name
        @relationship.name
      end

      # @return [Symbol]
      def association_name
        @relationship.object_method_name.to_sym
      end

      # @return [Boolean]
      def walks?
        @obstacle.nil?
      end

      # @return [Boolean]
      def links?
        @unlinked.nil?
      end

      # @return [Translation] of the related serializer and model
      def target
        @target ||= Translation.of(@relationship.static_serializer, @association.model)
      end

      # @return [Boolean] whether loading its records with their owners gives what each owner would answer
      def preload?
        association? && @adapter.instances.loads_at_once?(association_name)
      end

      # @return [Boolean] whether the owners may know that of themselves when they are there
      def preload_afterwards?
        association? && !preload?
      end

      # @return [Boolean] whether nothing is written of its records where they are not included, as was declared
      def left?
        @relationship.lazy_load_data && around_linkage.nil?
      end

      # @return [Boolean] whether its records are not asked for where they are not included: no linkage is written, or its own column is
      def unread?
        return false if around_linkage
        return true if left?

        unknown_serializer.nil? && !@relationship.static_record_type.nil? && @adapter.columns.include?(@relationship.id_method_name.to_sym)
      end

      private

      def association?
        !@relationship.object_block && @adapter.associations.include?(association_name)
      end

      def find_association
        @adapter.association(association_name) if @adapter.associations.include?(association_name)
      rescue DeclarationError => error
        @refusal = error.message
        nil
      end

      def obstacle
        return "its block takes the record" if @relationship.object_block
        return "its condition takes the record" if @relationship.conditional_proc
        return @refusal || "#{association_name} is not an association of #{@adapter.plural_name}" unless @association
        return "its records are of several models" unless @association.model
        return "#{association_name} is a #{@association.macro}" unless @association.to_many? == @relationship.to_many?
        return "#{association_name} is read by a method of the model's own" unless generated?(association_name)

        unknown_serializer
      end

      def unknown_serializer
        "its serializer depends on the record" unless @relationship.static_serializer.respond_to?(:relationships_to_serialize)
      rescue NameError => error # raised when a record is written
        error.message
      end

      def unlinked
        id = self.class.id_column(@relationship.static_serializer, @association.adapter)
        return "the id of a related record is not a column" unless id
        return foreign_key_reason(id) if @association.macro == :belongs_to
        return if id == @association.adapter.primary_key && plain_id_method?

        "the linked ids come from the method #{@relationship.id_method_name}"
      end

      def foreign_key_reason(id)
        method = @relationship.id_method_name.to_sym
        return if method == @association.owner_key && @association.foreign_key_of?(id) && MemberTranslation.id?(method, @adapter)

        "the linked id comes from the method #{method}"
      end

      # What ActiveRecord makes of the association, or nothing (Sequel, a has_one), for which the association itself is asked.
      def plain_id_method?
        method = @relationship.id_method_name.to_sym
        default = @relationship.to_many? ? :"#{Inflector.singularize(association_name.to_s)}_ids" : :"#{association_name}_id"
        return false unless method == default && !@adapter.columns.include?(method)

        generated?(method) || !(@adapter.model.method_defined?(method) || @adapter.model.private_method_defined?(method))
      end

      def unwritten
        return around_linkage if around_linkage
        return "its linkage has the type #{@relationship.static_record_type}" unless same_type?

        "its key is #{@relationship.key}" unless self.class.key_transform(keyed)
      end

      def around_linkage
        return "its links are made of the record" unless Blank.blank?(@relationship.links)

        "its meta is made of the record" unless Blank.blank?(@relationship.meta)
      end

      def same_type?
        @relationship.static_record_type == @relationship.static_serializer.record_type
      end

      # A resource has one transform for all its names.
      def keyed
        @serializer.relationships_to_serialize.values
      end

      # Whether the ORM wrote the method, and nobody another over it.
      def generated?(method)
        return false unless @adapter.model.method_defined?(method)

        owner = @adapter.model.instance_method(method).owner
        !owner.is_a?(Class) && (owner.name.nil? || owner.name.end_with?("GeneratedAssociationMethods"))
      end
    end
  end
end
