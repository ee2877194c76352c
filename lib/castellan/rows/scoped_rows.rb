# frozen_string_literal: true

module Castellan
  module Rows
    # The rows of a scoped resource that one viewer may see, as a condition in SQL. Made once per document.
    #
    #   visible = ScopedRows.new(TaskResource.definition, adapter, Task.where(team: 7))
    #   visible.condition    # => "tasks"."id" IN (SELECT "tasks"."id" FROM "tasks" WHERE "tasks"."team_id" = 7)
    #   visible.ids([1, 2])  # => { "1" => true }: the second is out of scope
    #
    # A subquery by primary key, whatever the scope is made of: its joins, LIMIT or GROUP BY stay inside.
    class ScopedRows
      # @return [Object] what the scope returned: a relation or dataset
      attr_reader :relation

      # @param definition [Resource::Definition]
      # @param adapter [Object] of its model
      # @param relation [ActiveRecord::Relation, Sequel::Dataset]
      def initialize(definition, adapter, relation)
        @definition = definition
        @adapter = adapter
        @relation = relation
      end

      # @return [Array<Symbol>] the columns that identify a row
      def keys
        @keys ||= @adapter.keys || [*@definition.id_column]
      end

      # @return [String] SELECT of the keys
      def subquery
        @subquery ||= @adapter.subquery_sql(relation, keys)
      end

      # @return [String] a condition on the resource's table
      def condition
        within(keys.map { |key| @adapter.qualified(key) })
      end

      # @param columns [Array<String>] the expressions of {#keys}
      # @return [String]
      def within(columns)
        "#{columns.one? ? columns.first : "(#{columns.join(", ")})"} IN (#{subquery})"
      end

      # @param scope [Object] a relation or dataset of the resource's model
      # @return [Object] those of its rows that the viewer may see
      def narrow(scope)
        @adapter.where_sql(scope, condition)
      end

      # @return [Object] all rows that the viewer may see, as the base of a collection
      def all
        @adapter.plain?(relation) ? relation : narrow(@adapter.scope)
      end

      # @param ids [Array<Object>] nil among them is never visible
      # @return [Hash{String => true}] those that the viewer may see, as text
      def ids(ids)
        ids = ids.compact.uniq
        return {} if ids.empty?

        column = @definition.id_column
        chosen = @adapter.by_ids(narrow(@adapter.scope), ids, column)
        found = column.is_a?(Array) ? RecordIds.of(@adapter.instances, @adapter.load(chosen), column) : @adapter.ids(chosen, column)
        found.to_h { |id| [id.to_s, true] }
      end
    end
  end
end
