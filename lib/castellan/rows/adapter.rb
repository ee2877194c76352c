# frozen_string_literal: true

module Castellan
  module Rows
    # Implements the methods that the adapters of ActiveRecord and Sequel share.
    module Adapter
      # @param error [StandardError]
      # @return [Boolean] whether the pg or the sqlite3 gem raised it
      def self.driver_error?(error)
        return true if defined?(::PG::Error) && error.is_a?(::PG::Error)

        defined?(::SQLite3::Exception) && error.is_a?(::SQLite3::Exception) || false
      end

      # @param error [StandardError] a driver's error
      # @return [Boolean] whether the connection is lost
      def self.connection_lost?(error)
        (defined?(::PG::ConnectionBad) && (error.is_a?(::PG::ConnectionBad) || error.is_a?(::PG::UnableToSend))) ||
          error.message.match?(/closed database|connection is closed/i)
      end

      # @return [Array<String>] the ids of the scope's rows as strings, in its order
      def ids(scope, column = primary_key)
        scope = narrowed(scope)
        return instances.read(load(scope), column).map(&:to_s) if scope_reason(scope)

        session { |session| session.column(session.rows(select_sql(scope, qualified(column))), 0).map(&:to_s) }
      end

      # @param further [Array<String>] additional SQL in the plan's statements: the scopes of resources
      # @return [Array<String>, nil] all tables that the plan's statements read; nil if that is not certain
      def tables(plan, scope, further = [])
        tables_read(plan).call(scope_key(scope), further)
      end

      # @return [String, nil] why {#tables} returns nil for a statement
      def tables_reason(plan, scope, further = [])
        tables_read(plan).reason(scope_key(scope), further)
      end

      # @return [Array<String>, String] the statement's tables, or why they are uncertain; see
      #   {StatementTables}
      def statement_tables(sql)
        @memo.fetch([:statement_tables, database_name]) { StatementTables.new(self) }.call(sql)
      end

      # @return [Boolean] whether both adapters can use the same session
      def shares?(_other)
        false
      end

      # @return [Boolean] whether several SELECTs can be sent to the database in one round trip
      def overlaps?
        false
      end

      # @return [Array<Integer>] changes when a loaded class may change how the plan's columns are read
      def loaded_classes(_plan)
        [].freeze
      end

      # @return [String, nil] the name of the column's type if the application defines its class
      def custom_type(_column)
        nil
      end

      # @return [String, nil] the callback or method that requires an instance, and its location
      def record_reason(_column)
        nil
      end

      # @return [Object] the adapter at the end of a path of to-one associations
      def at(path)
        path.reduce(self) { |adapter, name| adapter.association(name).adapter }
      end

      # @return [Boolean] whether every association of the path is stable, so that its SQL is constant
      def stable_path?(path)
        return true if path.empty?

        association = association(path.first)
        association.stable? && association.adapter.stable_path?(path.drop(1))
      end

      # @return [Symbol, nil] how texts are compared with the column: :integer, :decimal, :float, :boolean, :text, :uuid, :date,
      #   :datetime; nil if only the application can compare them
      def kind(column)
        @types.kind(column_name(column))
      end

      # @return [Hash{String => Object}, nil] the names of an enum's values, and how they are stored
      def enum(column)
        @types.enum(column_name(column))
      end

      # @return [Boolean] whether the column may be NULL
      def nullable?(column)
        @types.nullable?(column_name(column))
      end

      # @param sql [String] an SQL condition
      # @return [Object] the relation or dataset, within its own limit
      def matching(scope, sql)
        where_sql(limited(scope), sql)
      end

      # @param text [String] an id
      # @return [Object, nil] the column's value; nil if the column cannot hold it
      def typecast(column, text)
        @types.typecast(column, text)
      end

      # @return [Boolean] whether values of the column never contain a comma
      def commaless?(column)
        integer?(column) || database_type(column) == "uuid"
      end

      private

      # Combines a page's window with the scope's own.
      # @return [Array(Integer, nil, Integer)] limit and offset
      def window_within(own_limit, own_offset, limit, offset)
        offset = offset.to_i
        left = own_limit && [own_limit.to_i - offset, 0].max
        [[limit, left].compact.min, own_offset.to_i + offset]
      end

      # @return [Integer] the number of rows that a limit and an offset leave
      def within_window(limit, offset, count)
        [[count - offset.to_i, 0].max, limit&.to_i].compact.min
      end

      # The relation or dataset of the scope; for {Ids::Chosen} the one narrowed to the ids.
      def narrowed(scope)
        scope.is_a?(Ids::Chosen) ? scope.relation : scope
      end

      def tables_read(plan)
        plan.derive([:tables_read, model]) { TablesRead.new(self, plan) }
      end
    end
  end
end
