# frozen_string_literal: true

module Castellan
  module Rows
    # Reads rows by ids for a plan with only one table's columns, in one constant statement.
    # Frozen, one for each plan.
    #
    #   FlatReader.of(plan, adapter).call(ChosenIds.new(User.all, [7], :id))   # => RowSet
    #
    # Other scopes go through {Reader}.
    class FlatReader
      NOTHING = [].freeze
      NONE = {}.freeze
      private_constant :NOTHING, :NONE

      # @return [FlatReader, Reader] a Reader if the plan needs more
      def self.of(plan, adapter)
        reader = Reader.new(plan, adapter)
        root = plan.root
        return reader unless plan.nodes.size == 1 && root.edges.empty? && root.asides.empty? && adapter.model && adapter.constant_by_ids? &&
                             root.definition.scope.nil? &&
                             root.members.all? { |member| member.attribute.source == :column } && ModelReasons.of(root, adapter).empty?

        coders = NodeReader.new(root, adapter, NONE).coders
        coders.all? { |coder| coder && coder != :datetime } ? new(root, adapter, reader, coders) : reader # times depend on Time.zone
      end

      # @param reader [Reader] reads all other scopes
      # @param coders [Array<Symbol>] the same in each request
      def initialize(node, adapter, reader, coders)
        @node = node
        @adapter = adapter
        @reader = reader
        @coders = coders.freeze
        @column = node.definition.id_column
        @sql = NodeReader.new(node, adapter, NONE).by_ids_sql(nil).freeze
        @single_sql = adapter.dialect.single(@sql).freeze
        @indexed = @column == adapter.primary_key
        freeze
      end

      # (see Reader#call)
      # @return [Plan::RowSet]
      def call(scope, viewer: nil, scopes: ViewerScopes.new(viewer))
        by_ids = scope.is_a?(ChosenIds) && scope.column == @column && !scope.ids.empty?
        return @reader.call(scope, viewer: viewer, scopes: scopes) unless by_ids

        @adapter.session do |session|
          rows = session.rows(scope.ids.size == 1 ? @single_sql : @sql, scope.ids, kept: true, indexed: @indexed)
          retype = ->(index) { ComputedMembers.new(NodeReader.new(@node, @adapter, NONE), @coders, rows, session, viewer).retyped(index) }
          table = Plan::RowSet::Table.new(node: @node, rows: rows, coders: @coders, links: NOTHING, computed: NONE, retype: retype)
          Plan::RowSet.new([table])
        end
      end
    end
  end
end
