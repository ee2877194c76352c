# frozen_string_literal: true

module Castellan
  module Rows
    # Lists all tables that a plan's statements read, or returns why they are not certain.
    # Frozen, one for each plan.
    #
    #   tables = TablesRead.for(plan, adapter)
    #   tables.call(User.where(active: true).to_sql)   # => ["users", "roles", "assignments"]
    #   tables.reasons                                 # => ["users, label: …"], why they can never be known
    #   tables.scopes                                  # => SQL of associations whose scopes may change
    #
    # Uses {StatementTables}. Not certain for plans with blocks that take a record: Ruby may read any table.
    class TablesRead
      def self.for(plan, adapter)
        plan.derive([:tables_read, adapter.model]) { new(plan, adapter) }
      end

      # @return [Array<String>] for each type whose tables can never be known, what reads others
      attr_reader :reasons

      def initialize(plan, adapter)
        @adapter = adapter
        @reasons = []
        @fixed = []
        @scoped = []
        visit(plan.root, adapter)
        freeze
      end

      # @param further [Array<String>] additional SQL in the plan's statements: the scopes of resources
      # @return [Array<String>, String] the tables, or why they are not certain
      def call(scope_sql, further = [])
        never = reasons.first || @elsewhere and return never

        statements(scope_sql, further).flat_map do |sql|
          found = @adapter.scopes.statement_tables(sql)
          found.is_a?(Array) ? found : (return "#{found}: #{sql}")
        end.uniq
      end

      # @return [Boolean] whether the scope of an association may choose other tables in each request
      def changing? = @scoped.any?

      # @return [Array<String>] the SQL, in this request, of the associations whose scopes may change
      def scopes = @scoped.map { |association| association.lazy.whole_sql }

      # @return [Array<String>] SQL, in this request, of the associations that the plan reads
      def associations = @fixed + scopes

      private

      def visit(node, adapter)
        found = reasons_of(node, adapter)
        found.empty? ? read(node, adapter) : @reasons.concat(found)
        node.edges.each { |edge| edge.nodes.each { |below| visit(below, adapter.related(below.definition.model)) } }
      end

      def reasons_of(node, adapter)
        return ["#{node.definition.type}: it has no model, so a change of its objects cannot be noticed"] if adapter.model.nil?

        reasons = ModelReasons.of_tables(node, adapter) + node.edges.filter_map { |edge| hidden(edge, adapter) }
        reasons.map { |reason| "#{node.definition.type}, #{reason}" }
      end

      # Polymorphic links are in the row itself; a scope that hides the related record is in no statement.
      def hidden(edge, adapter)
        return if edge.alternatives.nil? || edge.relationship.itself?

        targets = edge.relationship.definitions.map { |definition| adapter.related(definition.model) }
        models = targets.select { |target| target.scopes.hide_rows? }.map(&:model)
        return if models.empty?

        "#{edge.relationship.name}: it leads to several types, and a default scope or a type of #{models.join(", ")} may hide records"
      end

      def read(node, adapter)
        here(adapter)
        @fixed << "SELECT 1 FROM #{adapter.types.table}"
        node.columns.each { |column| walk(adapter, column.path) }
        node.edges.each { |edge| walk(adapter, [edge.relationship.association_name]) unless edge.alternatives }
      end

      def walk(adapter, path)
        path.reduce(adapter) do |level, name|
          association = level.association(name)
          association.stable? ? @fixed << association.lazy.whole_sql : @scoped << association
          here(association.adapter)
          association.adapter
        end
      end

      # Another database may have a table of the same name.
      def here(adapter)
        return if adapter.same_database?(@adapter)

        @elsewhere ||= "#{adapter.table} is in another database than #{@adapter.table}"
      end

      # {PlanScopes#sql} writes "all" for a scope that hides nothing from the viewer.
      def statements(scope_sql, further) = [*associations, scope_sql, *(further - ["all"])].uniq
    end
  end
end
