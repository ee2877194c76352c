# frozen_string_literal: true

module Castellan
  module Rows
    # Lists all tables that a plan's statements read, or returns why they are uncertain.
    #
    #   tables = TablesRead.for(plan, adapter)
    #   tables.call(User.where(active: true).to_sql)   # => ["users", "roles", "assignments"]
    #   tables.reasons                                 # => ["users, label: …"], why they are always uncertain
    #   tables.scopes                                  # => SQL of associations whose scopes may change
    #
    # Uses {StatementTables}. Uncertain for plans with blocks that take a record, because Ruby may
    # read any table. Frozen, one per plan.
    class TablesRead
      # Represents an association that a plan reads, the root's column with its key, and the related resource.
      Link = Struct.new(:sql, :owner_key, :definition) do
        # @param root [Hash{String => String}] values that are the same in all rows of the root's table
        # @return [Array<Array(String, String)>] columns and values that are
        #   the same in all rows that it reads
        def values(table, root)
          scope = yield(definition) if definition
          own = Equality.of(sql, table).to_a.filter_map do |column, value|
            value = root[owner_key.to_s] if Association::OwnerKey.value?(value)
            [column, value] if value
          end
          own | (scope ? Equality.of(scope, table).to_a : [])
        end
      end
      LONGEST_SHAPE = 4_096 # bytes; longer shapes are not cached
      private_constant :Link, :LONGEST_SHAPE

      def self.for(plan, adapter)
        plan.derive([:tables_read, adapter.model, adapter.loaded_classes(plan)]) { new(plan, adapter) }
      end

      # @return [Array<String>] for each type whose tables cannot be
      #   determined, the member that may read others
      attr_reader :reasons

      def initialize(plan, adapter)
        @adapter = adapter
        @reasons = []
        @fixed = []
        @scoped = []
        @links = []
        @alternatives = []
        @root = plan.root
        @of_shapes = BoundedCache.new
        @texts = BoundedCache.new
        visit(plan.root, adapter)
        freeze
      end

      # @param further [Array<String>] additional SQL in the plan's statements: resource scopes
      # @return [Array<String>, String] the tables, or why they are uncertain
      def call(scope_sql, further = [])
        never = reasons.first || @elsewhere and return never

        statements(scope_sql, further).flat_map do |sql|
          found = @adapter.scopes.statement_tables(sql)
          found.is_a?(Array) ? found : (return "#{found}: #{sql}")
        end.uniq
      end

      # Caches the tables by the shape of the scope, and by the SQL of the associations whose scopes may change.
      # @param shape [String] see {Scopes#identity}
      # @yieldreturn [Array<String>, String] the result of {#call}
      # @return [Array<String>, String]
      def of_shape(shape)
        return yield if shape.bytesize > LONGEST_SHAPE

        @of_shapes.fetch(changing? ? [shape, scopes] : shape) { yield.freeze }
      end

      # Finds the tables from which all statements read only rows with one value in a column.
      # @param columns [Array<String>] in order of preference
      # @param scope_sql [String] the statement that selects the root's rows
      # @yieldparam definition [Resource::Definition]
      # @yieldreturn [String, nil] the SQL of the definition's scope
      # @return [Array<Array(String, String, String)>] table, column and value
      def parts(columns, scope_sql, further = [], &scope)
        further -= ["all"]
        return [] unless [scope_sql, *further, *scopes].all? { |sql| tables_of(sql).is_a?(Array) } # a value such as 'today' is uncertain

        root = Equality.of(scope_sql, tables_of(own(@adapter)).first)
        found = {}
        read = ->(sql, &values) { tables_of(sql).each { |table| found[table] = (found[table] || values.call(table)) & values.call(table) } }
        further = further.reject { |sql| tables_of(sql).one? { |table| Equality.filter?(sql, table) } }
        [scope_sql, *further, *scopes, *@alternatives].each do |sql|
          read.call(sql) { |table| Equality.of(sql, table).to_a.reject { |_, value| Association::OwnerKey.value?(value) } }
        end
        @links.each { |link| read.call(link.sql) { |table| link.values(table, root, &scope) } }
        found.filter_map { |table, values| columns.map { |column| [table, *values.assoc(column)] }.find { |part| part.size == 3 } }
      end

      # @return [Boolean] whether the scope of an association may read other tables in each request
      def changing? = @scoped.any?

      # @return [Array<String>] SQL of the associations whose scopes may change, for this request
      def scopes = @scoped.map { |association| whole_sql(association) }

      # @return [Array<String>] SQL of all associations that the plan reads, for this request
      def associations = @fixed + scopes

      private

      def visit(node, adapter)
        found = reasons_of(node, adapter)
        found.empty? ? read(node, adapter) : @reasons.concat(found)
        node.edges.each do |edge|
          edge.nodes.each do |below|
            related = adapter.related(below.definition.model)
            alternative(edge, related) if edge.alternatives
            visit(below, related)
          end
        end
      end

      def alternative(edge, adapter)
        return @alternatives << own(adapter) unless adapter.scopes.reads_subquery?

        @reasons << "#{edge.relationship.name}: #{adapter.model} reads a subquery (class table inheritance), whose tables are not known"
      end

      def own(adapter) = "SELECT 1 FROM #{adapter.types.table}"
      def tables_of(sql) = @adapter.scopes.statement_tables(sql)

      def reasons_of(node, adapter)
        return ["#{node.definition.type}: it has no model, so a change of its objects cannot be noticed"] if adapter.model.nil?

        reasons = ModelReasons.of_tables(node, adapter) + node.edges.filter_map { |edge| hidden(edge, adapter) }
        reasons.map { |reason| "#{node.definition.type}, #{reason}" }
      end

      # Polymorphic ids are in the row itself, so no statement contains the scope that hides a related record.
      def hidden(edge, adapter)
        return if edge.alternatives.nil? || edge.relationship.itself?

        targets = edge.relationship.definitions.map { |definition| adapter.related(definition.model) }
        models = targets.select { |target| target.scopes.hide_rows? }.map(&:model)
        return if models.empty?

        "#{edge.relationship.name}: it has several types, and a default scope or a type of #{models.join(", ")} may hide records"
      end

      def read(node, adapter)
        here(adapter)
        @fixed << own(adapter)
        node.columns.each { |column| walk(adapter, column.path, node) }
        node.edges.each { |edge| walk(adapter, [edge.relationship.association_name], node, edge) unless edge.alternatives }
      end

      def walk(adapter, path, node, edge = nil)
        path.reduce(adapter) do |level, name|
          association = level.association(name)
          association.stable? ? @fixed << association.lazy.whole_sql : @scoped << association
          link(association, node.equal?(@root) && level.equal?(adapter), edge)
          here(association.adapter)
          association.adapter
        end
      end

      # A limit, and the choice of a has_one's row, apply before the related resource's scope.
      def link(association, of_root, edge)
        return unless association.stable?

        related = edge ? edge.relationship.definitions : []
        narrowed = related.one? && (association.direct? || association.macro == :belongs_to) && association.lazy.plain?
        @links << Link.new(association.lazy.whole_sql, (association.owner_key if of_root), (related.first if narrowed)).freeze
      end

      def whole_sql(association)
        identity = association.identity or return association.lazy.whole_sql

        build = -> { association.lazy.whole_sql.then { |sql| sql if identity == association.identity } }
        @texts.fetch([association, identity], &build) || association.lazy.whole_sql
      end

      # Another database may have a table of the same name.
      def here(adapter)
        return if adapter.same_database?(@adapter)

        @elsewhere ||= "#{adapter.table} is in another database than #{@adapter.table}"
      end

      # {PlanScopes#sql} returns "all" for a scope that hides nothing from the viewer.
      def statements(scope_sql, further) = [*associations, scope_sql, *(further - ["all"])].uniq
    end
  end
end
