# frozen_string_literal: true

module Castellan
  module Rows
    # Lists all tables that a plan's statements read, or returns nil if they are not certain.
    # Frozen, one for each plan.
    #
    #   TablesRead.new(adapter, plan).call(User.where(active: true).to_sql)   # => ["users", "roles", "assignments"]
    #   TablesRead.new(adapter, plan).scopes                                  # => SQL of associations whose scopes may change
    #
    # Uses {StatementTables}. Returns nil for plans with blocks that take a record: Ruby may read any table.
    class TablesRead
      def initialize(adapter, plan)
        @adapter = adapter
        @known = true
        @fixed = []
        @scoped = []
        visit(plan.root, adapter)
        freeze
      end

      # @param further [Array<String>] additional SQL in the plan's statements: the scopes of resources
      # @return [Array<String>, nil]
      def call(scope_sql, further = [])
        return unless @known

        found = statements(scope_sql, further).map { |sql| @adapter.scopes.statement_tables(sql) }
        found.flatten.uniq if found.all?(Array)
      end

      # @return [String, nil] why {#call} returns nil; nil if the statements are certain
      def reason(scope_sql, further = [])
        return @elsewhere if @elsewhere

        statements(scope_sql, further).each do |sql|
          found = @adapter.scopes.statement_tables(sql)
          return "#{found}: #{sql}" unless found.is_a?(Array)
        end
        nil
      end

      # @return [Array<String>] the SQL, in this request, of the associations whose scopes may change
      def scopes
        @scoped.map { |association| association.lazy.whole_sql }
      end

      private

      def visit(node, adapter)
        @known &&= !opaque?(node, adapter) && here?(adapter)
        return unless @known

        @fixed << "SELECT 1 FROM #{adapter.types.table}"
        node.columns.each { |column| walk(adapter, column.path) }
        node.edges.each { |edge| edge(edge, adapter) }
      end

      # Polymorphic links are in the row itself; a default scope of a target makes the plan uncertain.
      def edge(edge, adapter)
        edge.alternatives ? @known &&= edge_known?(edge, adapter) : walk(adapter, [edge.relationship.association_name])
        edge.nodes.each { |node| visit(node, adapter.related(node.definition.model)) }
      end

      def edge_known?(edge, adapter)
        edge.relationship.definitions.none? { |definition| adapter.related(definition.model).scopes.hide_rows? }
      end

      def walk(adapter, path)
        path.reduce(adapter) do |level, name|
          association = level.association(name)
          association.stable? ? @fixed << association.lazy.whole_sql : @scoped << association
          @known &&= here?(association.adapter)
          association.adapter
        end
      end

      # Another database may have a table of the same name.
      def here?(adapter)
        return true if adapter.same_database?(@adapter)

        @elsewhere = "#{adapter.table} is in another database than #{@adapter.table}"
        false
      end

      def opaque?(node, adapter)
        adapter.model.nil? || ModelReasons.of_tables(node, adapter).any?
      end

      # {PlanScopes#sql} writes "all" for a scope that hides nothing from the viewer.
      def statements(scope_sql, further)
        [*@fixed, scope_sql, *scopes, *(further - ["all"])].uniq
      end
    end
  end
end
