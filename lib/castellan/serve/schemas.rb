# frozen_string_literal: true

module Castellan
  module Serve
    # Builds JSON Schemas (2020-12) of resources: what a viewer may read and write.
    #
    #   schemas = Schemas.new(viewer: nil)
    #   schemas.read(PostResource.definition)    # => { "type" => "object", "properties" => { "type" => …, "attributes" => … } }
    #   schemas.write(PostResource.definition, :create)
    #
    # A column has the type of the database. Values from Ruby code have no type.
    class Schemas
      TYPES = {
        integer: { "type" => "integer" }, float: { "type" => "number" }, decimal: { "type" => %w[number string] },
        boolean: { "type" => "boolean" }, string: { "type" => "string" }, text: { "type" => "string" }, citext: { "type" => "string" },
        uuid: { "type" => "string", "format" => "uuid" }, date: { "type" => "string", "format" => "date" },
        datetime: { "type" => "string", "format" => "date-time" }, timestamptz: { "type" => "string", "format" => "date-time" },
        time: { "type" => "string" }
      }.freeze
      ANYTHING = {}.freeze
      OBJECT = { "type" => "object", "additionalProperties" => true }.freeze
      # A link is a URL, an object with `href`, or null.
      LINKS = { "type" => "object", "additionalProperties" => { "type" => %w[string object null] } }.freeze
      ID = { "type" => "string" }.freeze
      private_constant :TYPES, :ANYTHING, :ID

      # @param viewer [Object, nil]
      # @param all [Boolean] whether to describe what any viewer may read and write, instead of this one
      def initialize(viewer: nil, all: false)
        @viewer = viewer
        @all = all
      end

      # @return [Hash] the schema of a resource object in a response
      def read(definition)
        attributes = visible(definition, definition.attributes).to_h { |one| [one.key, column(definition, one, read: true)] }
        relationships = visible(definition, definition.relationships).to_h { |one| [one.key, related(one)] }
        resource_object(definition, %w[type id], "id" => ID, "attributes" => object(attributes), "relationships" => object(relationships),
                                                 "links" => LINKS, "meta" => OBJECT)
      end

      # @param action [Symbol] :create or :update
      # @return [Hash, nil] the schema of a resource object in a request; nil if this viewer may not write
      #   anything
      def write(definition, action)
        names = writable(definition, action)
        return if names.empty?

        attributes = (names - definition.relationships.keys - [:id]).to_h do |name|
          attribute = definition.attributes[name]
          [attribute&.key || name.to_s, attribute ? column(definition, attribute) : type(definition, name)]
        end
        relationships = definition.relationships.values_at(*(names & definition.relationships.keys)).to_h do |one|
          [one.key, { "type" => "object", "properties" => { "data" => linkage(one) }, "required" => ["data"] }]
        end
        identity = action == :update ? %i[id] : [:lid, *(:id if names.include?(:id))]
        parts = { "attributes" => attributes, "relationships" => relationships }.reject { |_, one| one.empty? }
        properties = identity.to_h { |name| [name.to_s, ID] }.merge(parts.transform_values { |one| object(one, closed: true) })
        resource_object(definition, ["type", *("id" if action == :update)], **properties)
      end

      # @param action [Symbol] :create or :update
      # @return [Array<Symbol>] the names that this viewer may write
      def writable(definition, action)
        return definition.writing.rules.select { |rule| rule.actions.include?(action) }.flat_map(&:names).uniq if @all

        definition.writing.names(action, @viewer) - definition.hidden_from(@viewer)
      end

      # @return [Hash] the schema of the data of a relationship
      def linkage(relationship)
        one = identifier(relationship.definitions.map(&:type).uniq)
        relationship.to_many? ? { "type" => "array", "items" => one } : { "oneOf" => [one, { "type" => "null" }] }
      end

      # @return [Array<Resource::Attribute, Resource::Relationship>] the members that the viewer may see
      def visible(definition, members)
        @all ? members.values : members.except(*definition.hidden_from(@viewer)).values
      end

      private

      def column(definition, attribute, read: false)
        attribute.own_column ? type(definition, attribute.own_column, read: read) : ANYTHING
      end

      # The type is unknown if the table cannot be read, or the model is not one of an ORM.
      # In a response, a NOT NULL column is never null; a callback may replace a null in a request.
      def type(definition, name, read: false)
        type = Write::Models.for(definition.model).type(name)
        one = type.allowed ? { "enum" => type.allowed } : TYPES[type.name]
        return ANYTHING unless one

        one = { "type" => "array", "items" => nullable(one) } if type.array
        read && type.required ? one : nullable(one)
      rescue ConfigurationError
        ANYTHING
      end

      def nullable(schema)
        return { "enum" => [*schema["enum"], nil] } if schema["enum"]

        schema.merge("type" => [*schema["type"], "null"])
      end

      def resource_object(definition, required, **properties)
        { "type" => "object", "required" => required, "properties" => { "type" => { "const" => definition.type }, **properties } }
      end

      def identifier(types)
        { "type" => "object", "required" => %w[type id], "properties" => { "type" => { "enum" => types }, "id" => ID } }
      end

      def related(relationship)
        { "type" => "object", "properties" => { "data" => linkage(relationship), "links" => LINKS, "meta" => OBJECT } }
      end

      def object(properties, closed: false)
        return closed ? { "type" => "object", "additionalProperties" => false } : OBJECT if properties.empty?

        { "type" => "object", "properties" => properties, **(closed ? { "additionalProperties" => false } : {}) }
      end
    end
  end
end
