# frozen_string_literal: true

require_relative "preloading"
require_relative "member_translation"
require_relative "relationship_translation"

module Castellan
  module Serializer
    # One serializer over one model, as rows see it: the resource that stands for it, and what of it only records know.
    #
    #   translation = Translation.of(UserSerializer, User)
    #   translation.opaque?    # => true
    #   translation.reasons    # => { full_name: "its block takes the record" }
    #   translation.resource   # => a Castellan::Resource with the relationships whose linkage is read from rows
    #
    # One opaque member makes the whole type opaque: its objects are written from records, which are loaded once. Its resource then
    # has relationships alone. Made once for a serializer and a model, and gone with the serializer when its file is reloaded.
    class Translation
      # @return [Class] the serializer
      # @return [Object] the rows adapter of the model
      # @return [Hash{Symbol => String}] what is opaque, and why
      attr_reader :serializer, :adapter, :reasons

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
        @reasons = {}
        @associations = {}
        (serializer.relationships_to_serialize || {}).each_value { |relationship| look_at(relationship) }
        (serializer.attributes_to_serialize || {}).each_value { |attribute|
          explain(attribute.key, MemberTranslation.reason(attribute, @adapter))
        }
        look_at_the_rest
        @reasons.freeze
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

      # What records of this type need loaded before they are asked: what is declared, and the associations of its relationships,
      # but for those whose linkage comes from rows.
      # @param fieldset [Array<Symbol>, nil] the members that are written
      # @param included [Array<Symbol>, nil] the relationships whose records are asked for; nil: those come from rows
      # @return [Array<Symbol, Hash>]
      def preloads(fieldset, included = nil)
        declared = chosen(serializer.attributes_to_serialize, fieldset) + chosen(serializer.relationships_to_serialize, fieldset)
        (declared.flat_map(&:preloads) + walked(fieldset, included).select(&:preload?).map(&:association_name)).uniq
      end

      # The associations of its relationships that the loaded records may be able to load for all of them at once; see {Preloading}.
      # @return [Array<Symbol>]
      def preloads_afterwards(fieldset, included = nil)
        walked(fieldset, included).select(&:preload_afterwards?).map(&:association_name).uniq
      end

      # The records of a relation, with what their serializer asks of them.
      # @param fieldset [Array<Symbol>, nil] the members that are written
      # @return [Array]
      def load(scope, fieldset)
        records = Preloading.records(scope, preloads(fieldset))
        Preloading.afterwards(records, adapter.instances, preloads_afterwards(fieldset))
      end

      private

      def walked(fieldset, included)
        readers = chosen(serializer.relationships_to_serialize, fieldset).map { |one| association(one.name) }
        readers = readers.reject(&:links?) unless included
        walks = walks?(fieldset)
        readers.reject { |reader| !included&.include?(reader.name) && (walks ? reader.left? : reader.unread?) }
      end

      # Whether what is written is made of the record, by a block, say, that may walk any of its associations.
      def walks?(fieldset)
        return true if %i[id links meta].any? { |name| reasons.key?(name) }

        chosen(serializer.attributes_to_serialize, fieldset).any? { |attribute| attribute.from || reasons.key?(attribute.key) }
      end

      def chosen(members, fieldset)
        members ||= {}
        fieldset ? members.slice(*fieldset).values : members.values
      end

      def explain(name, reason)
        @reasons[name] ||= reason if reason
      end

      def look_at(relationship)
        @associations[relationship.name] = reader = RelationshipTranslation.new(relationship, serializer, adapter)
        explain(relationship.name, reader.reason)
      end

      def look_at_the_rest
        explain(:id, "the id is not a column that the model reads as it is") unless id_of_column?
        explain(:links, "its links are made of the record") unless Blank.blank?(serializer.data_links)
        explain(:meta, "its meta is made of the record") unless Blank.blank?(serializer.meta_to_serialize)
        names = [*serializer.attributes_to_serialize&.keys] & [*serializer.relationships_to_serialize&.keys]
        names.each { |name| explain(name, "it is an attribute and a relationship") }
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
          translation.send(:declare_attributes, self) unless translation.opaque?
          translation.send(:declare_relationships, self)
        end
      end

      # Attributes are declared by their keys, which a transform leaves as they are.
      def declare_attributes(resource)
        (serializer.attributes_to_serialize || {}).each_value do |attribute|
          column = attribute.from || attribute.column
          from = { from: Array(column).join(".") } unless column == attribute.key
          resource.attribute(attribute.key, as_stored: attribute.as_stored, **from.to_h)
        end
      end

      def declare_relationships(resource)
        linked.each do |relationship|
          reader = association(relationship.name)
          resource.public_send(relationship.relationship_type, relationship.name, resource: -> { reader.target.resource })
        end
      end

      def key_transform
        RelationshipTranslation.key_transform(linked) || :none
      end
    end
  end
end
