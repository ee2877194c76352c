# frozen_string_literal: true

module Castellan
  module Rows
    # How the links of a polymorphic belongs_to are read: from the columns of type and id in the row itself. Frozen.
    #
    #   link = PolymorphicLink.new(edge, adapter)
    #   link.expressions                                   # => [type, id], what the row's SELECT has to contain
    #   link.kind_of("User")                               # => 0, the position in relationship.definitions
    #
    # A target with a default scope, or of a resource with a scope, may hide a record: which of the ids are there is asked in one
    # statement for each such type.
    class PolymorphicLink
      # @return [Plan::Node::Edge]
      # @return [Object] the association
      # @return [Array<Correlated>]
      attr_reader :edge, :association, :expressions

      def initialize(edge, adapter)
        @edge = edge
        @adapter = adapter
        @association = adapter.association(edge.relationship.association_name)
        @expressions = [association.type_column, association.owner_key].map { |column| Correlated.column(adapter.qualified(column)) }
        @kinds = edge.relationship.kinds.map { |kind| association.type_name(kind) }.freeze
        freeze
      end

      # @return [Symbol]
      def kind
        :polymorphic
      end

      # @return [Boolean] whether the links take a SELECT of their own
      def select?
        false
      end

      # @return [Boolean] whether it means the same in each request
      def stable?
        edge.relationship.definitions.none? { |definition| scoped?(definition) }
      end

      # @param parents [Array<Object>]
      # @param types [Array<String, nil>] one for each parent
      # @param ids [Array<Object, nil>]
      # @param scopes [ViewerScopes]
      # @return [Array<Array(Object, Object, Integer)>] parent, related id and position of its type
      # @raise [ConfigurationError] for a type that has no resource
      def rows(parents, types, ids, scopes)
        found = parents.zip(ids, types).filter_map { |parent, id, type| [parent, id, kind_of(type)] if type && id }
        found.group_by(&:last).each { |kind, rows| hide(rows, kind, found, scopes) }
        found
      end

      private

      def kind_of(type)
        @kinds.index(type) or raise ConfigurationError, "#{edge.relationship.name}: no resource is declared for records of " \
                                                        "#{type.inspect}; name it in resource: (#{edge.relationship.location})"
      end

      def scoped?(definition)
        @adapter.related(definition.model).scoped?
      end

      def hide(rows, kind, found, scopes)
        definition = edge.relationship.definitions[kind]
        return unless scoped?(definition) || scopes.of(definition, @adapter)

        related = @adapter.related(definition.model)
        chosen = related.by_ids(scopes.narrow(definition, related), rows.map { |row| row[1] }.uniq, definition.id_column)
        there = related.ids(chosen, definition.id_column).to_h { |id| [id, true] }
        found.reject! { |row| row.last == kind && !there[row[1].to_s] }
      end
    end
  end
end
