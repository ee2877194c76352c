# frozen_string_literal: true

module Castellan
  module Rows
    # Collects the resource scopes that apply to a plan: to its nodes, linkage and paths.
    # Frozen, one for each plan.
    #
    #   scopes = PlanScopes.of(plan, adapter)
    #   scopes.any?             # => true
    #   scopes.along(column)    # => [Definition, nil], the scoped resource of each step of the column's path
    class PlanScopes
      # @return [PlanScopes]
      def self.of(plan, adapter)
        plan.derive([:plan_scopes, adapter.model]) { new(plan, adapter) }
      end

      def initialize(plan, adapter)
        @adapter = adapter
        @along = {}.compare_by_identity
        @definitions = []
        visit(plan.root, adapter)
        @definitions = @definitions.uniq.freeze
        @along.freeze
        freeze
      end

      # @return [Boolean]
      def any?
        @definitions.any?
      end

      # @param column [Plan::Column] a column of one of the plan's nodes
      # @return [Array<Resource::Definition, nil>, nil] one for each step; nil if none has a scope
      def along(column)
        @along[column]
      end

      # Calls every scope of the plan, so that their errors are raised before any query.
      # @param scopes [ViewerScopes]
      # @return [Array<String>] their SQL
      def sql(scopes)
        @definitions.map { |definition| scopes.of(definition, @adapter)&.subquery || "all" }
      end

      private

      def visit(node, adapter)
        scoped(node.definition)
        node.columns.each { |column| path(node, adapter, column) unless column.own? }
        node.edges.each do |edge|
          edge.relationship.definitions.each { |definition| scoped(definition) }
          edge.nodes.each { |below| visit(below, Rows.related(adapter, edge.relationship, below.definition)) }
        end
      end

      def path(node, adapter, column)
        found = PathResources.of(node.definition, adapter, column.path).map { |definition| definition if definition&.scope }
        return if found.none?

        @along[column] = found.freeze
        found.compact.each { |definition| scoped(definition) }
      end

      def scoped(definition)
        @definitions << definition if definition.scope
      end
    end
  end
end
