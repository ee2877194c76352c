# frozen_string_literal: true

module Castellan
  module Serializer
    # The class methods of jsonapi-serializer that write one record, or one part of it, as a hash. Castellan never calls them, so a
    # serializer that overrides one raises; see {ClassMethods#singleton_method_added}.
    #
    #   UserSerializer.record_hash(user, nil, nil)   # => { id: "1", type: :user, attributes: { email: "ada@example.com" } }
    module HashMethods
      # The methods that Castellan never calls.
      NAMES = %i[record_hash attributes_hash relationships_hash links_hash meta_hash id_hash get_included_records].freeze

      # @param fieldset [Array<Symbol>, nil]
      # @param includes_list [Array<Symbol>, nil] the relationships whose records are included
      # @return [Hash]
      def record_hash(record, fieldset, includes_list, params = {})
        ResourceObject.new(self, fieldset, params, includes_list || []).call(record)
      end

      # @return [Hash]
      def attributes_hash(record, fieldset = nil, params = {})
        ResourceObject.new(self, fieldset, params).attributes(record)
      end

      # @param relationships [Hash{Symbol => Relationship}, nil] nil for all
      # @return [Hash]
      def relationships_hash(record, relationships = nil, fieldset = nil, includes_list = nil, params = {})
        relationships ||= relationships_to_serialize
        relationships = relationships.slice(*fieldset) if fieldset
        ResourceObject.new(self, fieldset, params, includes_list || []).relationships(record, relationships.values)
      end

      # @return [Hash]
      def links_hash(record, params = {})
        ResourceObject.new(self, nil, params).links(record)
      end

      # @return [Object]
      def meta_hash(record, params = {})
        ResourceObject.new(self, nil, params).meta_of(meta_to_serialize, record)
      end

      # @return [Hash, nil]
      def id_hash(id, record_type, default_return = false) # rubocop:disable Style/OptionalBooleanParameter
        return { id: id.to_s, type: record_type } unless Blank.blank?(id)

        { id: nil, type: record_type } if default_return
      end

      # @param known [Set<String>] "type_id" of the records that are written already; those that are found are added
      # @param fieldsets [Hash{Symbol => Array<Symbol>}]
      # @return [Array<Hash>, nil]
      def get_included_records(record, includes_list, known, fieldsets, params = {})
        return if Blank.blank?(includes_list)

        options = Options.new(self, { include: includes_list, fields: fieldsets, params: params })
        Included.new(options).of(self, [record]).select { |object| known.add?("#{object[:type]}_#{object[:id]}") }
      end

      # @return [Hash{Symbol => Relationship}, nil] those with `cached: true`
      def cachable_relationships_to_serialize
        relationships_to_serialize&.select { |_, relationship| relationship.cached }
      end

      # @return [Hash{Symbol => Relationship}, nil] the others
      def uncachable_relationships_to_serialize
        relationships_to_serialize&.reject { |_, relationship| relationship.cached }
      end
    end
  end
end
