# frozen_string_literal: true

module Castellan
  class Document
    # Which tables a document is made of, found once for statements that differ in their values only.
    #
    #   tables = Tables.new(plan, adapter, scopes)
    #   tables.of(scope, scope_sql)   # => ["roles", "users"]; nil: not known
    #
    # What is found is kept only where no association has a scope, because a scope may choose its tables anew in each request.
    # A block that takes the record may read anything, and a statement that asks for the time or the user is made of more than
    # tables: nothing is said of those.
    class Tables
      LITERAL = /'(?:[^']|'')*'|\b\d+\b/
      # A statement longer than this is not worth keeping.
      MAX_BYTESIZE = 4_096
      AMBIENT = /\b(?:CURRENT_(?:DATE|TIME|TIMESTAMP|USER|ROLE|CATALOG|SCHEMA)|LOCALTIME|LOCALTIMESTAMP|SESSION_USER)\b/i
      UNKNOWN = [].freeze
      private_constant :LITERAL, :MAX_BYTESIZE, :AMBIENT, :UNKNOWN

      # @param scopes [Rows::ViewerScopes]
      def initialize(plan, adapter, scopes)
        @plan = plan
        @adapter = adapter
        @scopes = Rows::PlanScopes.of(plan, adapter).sql(scopes)
      end

      # @param scope [Object] the caller's relation or dataset
      # @param sql [String] its statement
      # @return [Array<String>, nil]
      def of(scope, sql)
        return if known(:opaque) { opaque? }

        return read(scope, skeleton(sql)) if sql.bytesize > MAX_BYTESIZE || !stable?

        found = kept(:tables_of_statements, sql) { kept(:tables, skeleton(sql)) { |text| read(scope, text) || UNKNOWN } }
        found unless found.equal?(UNKNOWN)
      end

      # @return [Array<String>] why {#of} returns nil
      def reasons(scope, sql)
        found = @plan.nodes.flat_map { |node| reasons_of(node) }
        found << "its statement asks for #{sql[AMBIENT]}" if AMBIENT.match?(skeleton(sql))
        return found unless found.empty? && of(scope, sql).nil?

        ["which tables its statements read cannot be told for certain (a view, a function, another schema, row-level security): #{sql}"]
      end

      private

      # By the whole statement first, because a scope that is fixed has the same one in every request.
      def kept(name, text, &block)
        @plan.derive(name) { Plan::BoundedCache.new }.fetch(text) { block.call(text) }
      end

      def skeleton(sql)
        sql.gsub(LITERAL, "?")
      end

      def known(key)
        @plan.derive(key) { yield ? :yes : :no } == :yes
      end

      def read(scope, skeleton)
        @adapter.tables(@plan, scope, @scopes)&.freeze unless AMBIENT.match?(skeleton)
      end

      def opaque?
        @plan.nodes.any? { |node| reasons_of(node).any? }
      end

      def reasons_of(node)
        adapter = @adapter.related(node.definition.model)
        return ["#{node.definition.type}: it has no model, and nobody can tell when objects change"] if adapter.model.nil?

        reasons = Rows::ModelReasons.of_tables(node, adapter) + node.edges.filter_map { |edge| hidden(edge, adapter) if edge.alternatives }
        reasons.map { |reason| "#{node.definition.type}, #{reason}" }
      end

      # Links to several types are in the row itself, and what hides a record of them is in no statement of this document.
      def hidden(edge, adapter)
        models = edge.relationship.definitions.map { |definition| adapter.related(definition.model) }.select(&:scoped?).map(&:model)
        return if models.empty?

        "#{edge.relationship.name}: it leads to several types, and a default scope or a type of #{models.join(", ")} may hide records"
      end

      def stable?
        known(:stable) { node_stable?(@plan.root, @adapter) }
      end

      def node_stable?(node, adapter)
        node.columns.all? { |column| adapter.stable_path?(column.path) } &&
          node.edges.all? { |edge| edge_stable?(edge, adapter) && below_stable?(edge) }
      end

      def edge_stable?(edge, adapter)
        edge.alternatives ? true : adapter.association(edge.relationship.association_name).stable?
      end

      def below_stable?(edge)
        edge.nodes.all? { |node| node_stable?(node, @adapter.related(node.definition.model)) }
      end
    end
  end
end
