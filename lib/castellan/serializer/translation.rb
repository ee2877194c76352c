# frozen_string_literal: true

require_relative "preloading"
require_relative "member_translation"
require_relative "relationship_translation"

module Castellan
  module Serializer
    # Builds the {Resource} that stands for one serializer over one model.
    #
    #   translation = Translation.of(UserSerializer, User)
    #   translation.resource   # => a Castellan::Resource
    #   translation.opaque?    # => true: the records are loaded
    #   translation.reasons    # => { full_name: "its block takes the record" }
    #
    # An attribute that is no column becomes one whose block takes the record: then the records of the type are loaded, once, and linkage
    # stays rows. Made once for a serializer and a model, and gone with the serializer when its file is reloaded.
    class Translation
      # @return [Class] the serializer
      # @return [Object] the rows adapter of the model
      # @return [Hash{Symbol => String}] the attributes that need records, and why
      # @return [String, nil] why no resource can stand for the serializer
      attr_reader :serializer, :adapter, :reasons, :obstacle

      # @param model [Class] of ActiveRecord or Sequel
      # @return [Translation]
      # @raise [DeclarationError] for a model that cannot be read as rows
      def self.of(serializer, model)
        known = serializer.instance_variable_get(:@castellan_translations) ||
                serializer.instance_variable_set(:@castellan_translations, {}.compare_by_identity)
        known[model] ||= new(serializer, model)
      end

      def initialize(serializer, model)
        serializer.record_type!
        @serializer = serializer
        @adapter = Rows.for(model)
        @associations = (serializer.relationships_to_serialize || {}).transform_values do |relationship|
          RelationshipTranslation.new(relationship, serializer, adapter)
        end
        attributes = serializer.attributes_to_serialize || {}
        @reasons = attributes.transform_values { |attribute| MemberTranslation.reason(attribute, adapter) }.compact.freeze
        @obstacle = find_obstacle
      end

      # @return [Class]
      def model
        adapter.model
      end

      # @return [Boolean]
      def opaque?
        reasons.any?
      end

      # @return [RelationshipTranslation] how rows see that relationship
      def association(name)
        @associations.fetch(name)
      end

      # @return [Symbol, nil] the column that rows are identified by
      def id_column
        @id_column ||= RelationshipTranslation.id_column(serializer, adapter) || adapter.primary_key
      end

      # @return [Boolean] whether the id that is written is that column's
      def id_of_column?
        !RelationshipTranslation.id_column(serializer, adapter).nil?
      end

      # @return [Array<Relationship>] those whose linkage is read from rows
      def linked
        @linked ||= (serializer.relationships_to_serialize || {}).values.select { |relationship| association(relationship.name).links? }
      end

      # @return [Class] a resource; each has `translation`
      def resource
        @resource ||= declare
      end

      # What records of this type need loaded before they are written: what is declared, and the associations of its relationships.
      # @param fieldset [Array<Symbol>, nil] the members that are written
      # @param included [Array<Symbol>] the relationships whose records are included
      # @return [Array<Symbol, Hash>]
      def preloads(fieldset, included)
        declared = chosen(serializer.attributes_to_serialize, fieldset) + chosen(serializer.relationships_to_serialize, fieldset)
        (declared.flat_map(&:preloads) + walked(fieldset, included).select(&:preload?).map(&:association_name)).uniq
      end

      # The associations of its relationships that the loaded records may be able to load for all of them at once; see {Preloading}.
      # @return [Array<Symbol>]
      def preloads_afterwards(fieldset, included)
        walked(fieldset, included).select(&:preload_afterwards?).map(&:association_name).uniq
      end

      private

      def walked(fieldset, included)
        readers = chosen(serializer.relationships_to_serialize, fieldset).map { |one| association(one.name) }
        walks = walks?(fieldset)
        readers.reject { |reader| !included.include?(reader.name) && (walks ? reader.left? : reader.unread?) }
      end

      # Whether what is written is made of the record, by a block, say, that may walk any of its associations.
      def walks?(fieldset)
        return true if !id_of_column? || made_of_records

        chosen(serializer.attributes_to_serialize, fieldset).any? { |attribute| attribute.from || reasons.key?(attribute.key) }
      end

      def chosen(members, fieldset)
        members ||= {}
        fieldset ? members.slice(*fieldset).values : members.values
      end

      def find_obstacle
        return "its id is not a column that the model reads as it is" unless id_of_column?
        return "its id, #{id_column}, may be that of several records" if opaque? && id_column != adapter.primary_key

        both = [*serializer.attributes_to_serialize&.keys] & [*serializer.relationships_to_serialize&.keys]
        both.any? ? "#{both.first} is an attribute and a relationship" : made_of_records
      end

      def made_of_records
        return "its links are made of the record" unless Blank.blank?(serializer.data_links)

        "its meta is made of the record" unless Blank.blank?(serializer.meta_to_serialize)
      end

      def declare
        translation = self
        Class.new(Castellan::Resource) do
          define_singleton_method(:name) { translation.serializer.name }
          define_singleton_method(:translation) { translation }
          model translation.model
          type translation.serializer.record_type
          id translation.id_column
          key_transform translation.send(:key_transform)
          translation.send(:declare_attributes, self)
          translation.send(:declare_relationships, self)
        end
      end

      # Attributes are declared by their keys, which a transform leaves as they are.
      def declare_attributes(resource)
        (serializer.attributes_to_serialize || {}).each_value do |attribute|
          next if MemberTranslation.obstacle(attribute)
          next declare_block(resource, attribute) if reasons.key?(attribute.key)

          column = attribute.from || attribute.column
          from = { from: Array(column).join(".") } unless column == attribute.key
          resource.attribute(attribute.key, as_stored: attribute.as_stored, **from.to_h)
        end
      end

      def declare_block(resource, attribute)
        resource.attribute(attribute.key, preloads: attribute.preloads) { |record, params| attribute.value(record, params) }
      end

      def declare_relationships(resource)
        linked.each do |relationship|
          reader = association(relationship.name)
          from = reader.association_name unless reader.association_name == relationship.name
          resource.public_send(relationship.relationship_type, relationship.name, from: from, resource: -> { reader.target.resource })
        end
      end

      def key_transform
        RelationshipTranslation.key_transform(linked) || :none
      end
    end
  end
end
