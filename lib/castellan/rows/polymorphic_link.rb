# frozen_string_literal: true

module Castellan
  module Rows
    # Reads the links of a polymorphic belongs_to from the type and id columns in the row. Frozen.
    #
    #   link = PolymorphicLink.new(edge, adapter)
    #   link.expressions                                   # => [type, id], which the row's SELECT must contain
    #   link.kind_of("User")                               # => 0, the position in relationship.definitions
    #
    # A default scope, or a resource's scope, may hide records: a query for each such type finds the visible
    # ids.
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

      # @return [Boolean] whether the links need a SELECT of their own
      def select?
        false
      end

      # @return [Boolean] whether the link is the same in every request
      def stable?
        edge.relationship.definitions.none? { |definition| scoped?(definition) }
      end

      # @param parents [Array<Object>] the parents' ids
      # @param types [Array<String, nil>] one for each parent
      # @param ids [Array<Object, nil>] one for each parent
      # @param scopes [ViewerScopes]
      # @return [Array<Array(Object, Object, Integer)>] parent id, related id and type position
      # @raise [ConfigurationError] for a type without a resource
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
