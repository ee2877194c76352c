# frozen_string_literal: true

module Castellan
  module Rows
    # What the adapters of both ORMs answer alike: each from what it says of its own scopes, associations and columns.
    module Adapter
      # @return [Array<String>] the ids of the scope's rows, as text, in its order
      def ids(scope, column = primary_key)
        session { |session| session.column(session.rows(select_sql(scope, qualified(column))), 0).map(&:to_s) }
      end

      # @param further [Array<String>] SQL that the plan's statements contain besides: of the scopes of resources
      # @return [Array<String>, nil] every table that the plan's statements read; nil when that cannot be known
      def tables(plan, scope, further = [])
        tables_read(plan).call(scope_key(scope), further)
      end

      # @return [String, nil] why {#tables} is nil for a statement
      def tables_reason(plan, scope, further = [])
        tables_read(plan).reason(scope_key(scope), further)
      end

      # @return [Array<String>, String] the tables that a statement reads, or why that is not certain; see {StatementTables}
      def statement_tables(sql)
        @memo.fetch([:statement_tables, database_name]) { StatementTables.new(self) }.call(sql)
      end

      # @return [Boolean] whether a session of these rows is one of the other's as well
      def shares?(_other)
        false
      end

      # @return [Boolean] whether SELECTs that are asked at the same time may go to the database together
      def overlaps?
        false
      end

      # @return [Array<Integer>] changes when a class is loaded by which a plan's columns may be read in another way
      def loaded_classes(_plan)
        [].freeze
      end

      # @return [String, nil] the name of a column's type where that is the application's own class
      def custom_type(_column)
        nil
      end

      # @return [String, nil] why only an instance gives the column's value: the callback or method, and where it is written
      def record_reason(_column)
        nil
      end

      # @return [Object] the adapter at the end of a path of to-one associations
      def at(path)
        path.reduce(self) { |adapter, name| adapter.association(name).adapter }
      end

      # @return [Boolean] whether no scope takes part in the path
      def stable_path?(path)
        return true if path.empty?

        association = association(path.first)
        association.stable? && association.adapter.stable_path?(path.drop(1))
      end

      # @param text [String] of an id
      # @return [Object, nil] the value that the column would hold; nil: none
      def typecast(column, text)
        @types.typecast(column, text)
      end

      # @return [Boolean] whether no value of the column can hold a comma
      def commaless?(column)
        integer?(column) || database_type(column) == "uuid"
      end

      private

      # The part of a scope's own window that a page leaves.
      # @return [Array(Integer, nil, Integer)] limit and offset
      def window_within(own_limit, own_offset, limit, offset)
        offset = offset.to_i
        left = own_limit && [own_limit.to_i - offset, 0].max
        [[limit, left].compact.min, own_offset.to_i + offset]
      end

      # Where ids were chosen, the relation or dataset of them alone.
      def narrowed(scope)
        scope.is_a?(ChosenIds) ? scope.relation : scope
      end

      def tables_read(plan)
        plan.derive([:tables_read, model]) { TablesRead.new(self, plan) }
      end
    end
  end
end
