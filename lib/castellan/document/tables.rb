# frozen_string_literal: true

module Castellan
  class Document
    # Finds the tables that a document is made of, once per shape of its scope.
    #
    #   tables = Tables.new(plan, adapter)
    #   tables.of(scope, shape) { scopes_sql }   # => ["roles", "users"]; nil: not known
    #
    # The result is cached only where no association has a scope, because a scope may choose other tables in each request.
    class Tables
      # A shape longer than this is not worth keeping.
      MAX_BYTESIZE = 4_096
      UNKNOWN = [].freeze
      private_constant :MAX_BYTESIZE, :UNKNOWN

      def initialize(plan, adapter)
        @plan = plan
        @adapter = adapter
      end

      # @param scope [Object] the caller's relation or dataset
      # @param shape [String] see {Rows::Scopes#identity}
      # @yieldreturn [Array<String>] SQL of the scopes of the resources in the plan
      # @return [Array<String>, nil]
      def of(scope, shape, &scopes)
        known = @plan.derive(:tables_known) { knowledge }
        return if known == :never
        return read(scope, &scopes) if known == :changing || shape.bytesize > MAX_BYTESIZE

        found = @plan.derive(:tables_of_shapes) { BoundedCache.new }.fetch(shape) { read(scope, &scopes) || UNKNOWN }
        found unless found.equal?(UNKNOWN)
      end

      # @return [Array<String>] why {#of} returns nil
      def reasons(scope, shape, &scopes)
        found = @plan.nodes.flat_map { |node| reasons_of(node) }
        return found unless found.empty? && of(scope, shape, &scopes).nil?

        ["the tables that a statement reads are not certain: #{@adapter.scopes.tables_reason(@plan, scope, yield)}"]
      end

      private

      # @return [:never, :changing, :fixed] whether the same statement always has the same tables
      def knowledge
        return :never if @plan.nodes.any? { |node| reasons_of(node).any? }

        node_stable?(@plan.root, @adapter) ? :fixed : :changing
      end

      def read(scope)
        @adapter.scopes.tables(@plan, scope, yield)&.freeze
      end

      def reasons_of(node)
        adapter = @adapter.related(node.definition.model)
        return ["#{node.definition.type}: it has no model, so a change of its objects cannot be noticed"] if adapter.model.nil?

        reasons = Rows::ModelReasons.of_tables(node, adapter) + node.edges.filter_map { |edge| hidden(edge, adapter) if edge.alternatives }
        reasons.map { |reason| "#{node.definition.type}, #{reason}" }
      end

      # Polymorphic linkage is a column of the row; a scope that hides the related record is in no statement of this document.
      def hidden(edge, adapter)
        targets = edge.relationship.definitions.map { |definition| adapter.related(definition.model) }
        models = targets.select { |target| target.scopes.hide_rows? }.map(&:model)
        return if models.empty?

        "#{edge.relationship.name}: it leads to several types, and a default scope or a type of #{models.join(", ")} may hide records"
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
