# frozen_string_literal: true

module Castellan
  module Rows
    # Narrows, orders, counts and loads relations or datasets of one model, and returns their SQL.
    # {ActiveRecordRows::Scopes} and {SequelRows::Scopes} inherit from it. Frozen.
    #
    #   scopes = Rows.for(User).scopes
    #   scopes.page(scopes.order(User.where(active: true), [%i[email asc]]), limit: 20, offset: 40)
    class Scopes
      NO_VALUES = [].freeze
      private_constant :NO_VALUES

      def initialize(adapter)
        @adapter = adapter
        @model = adapter.model
        @types = adapter.types
        @dialect = adapter.dialect
        @unreadable = dialect.reason
        @statements = StatementTables.new(adapter)
      end

      # @return [Array<String>] the ids of the scope's rows as strings, in its order
      def ids(scope, column = primary_key)
        scope = narrowed(scope)
        return adapter.instances.read(load(scope), column).map(&:to_s) if reason(scope)

        adapter.session { |session| session.column(session.rows(select_sql(scope, types.qualified(column))), 0).map(&:to_s) }
      end

      # @param ids [Array<String, Integer>] as the client sent them
      # @return [Object, Ids::Chosen] the latter if the scope adds no conditions to the model
      def by_ids(scope, ids, column = primary_key)
        return by_several(limited(scope), ids, column) if column.is_a?(Array)

        ids = types.integer?(column) ? Ids.integers(ids) : possible(ids, column)
        return with_values(limited(scope), column, ids) unless whole?(scope) && kept_ids?(ids, column)

        Ids::Chosen.new(scope, ids, column.to_sym) { |all, chosen| with_values(all, column, chosen) }
      end

      # @return [Integer] the number of distinct rows, within the scope's own limit
      def count(scope)
        scope = narrowed(scope)
        counted(scope, count_of(unlimited(scope)))
      end

      # @param count [Integer] the result of `count_sql`, which ignores the scope's own limit
      # @return [Integer] what {#count} returns
      def counted(scope, count)
        within_window(*window(narrowed(scope)), count)
      end

      # @return [Symbol, nil] :asc or :desc if the scope has no order or is ordered by its key
      def key_order(scope)
        return if limited?(scope)

        terms = terms(scope)
        return :asc if terms.empty?

        direction(terms.first) if terms.one?
      end

      # @param ids [Array] values of `column`
      # @param condition [String, nil] an additional SQL condition
      # @return [Array<Object>] records; associations link to rows that a default scope hides, so it does not apply
      def load_by_ids(ids, column = primary_key, condition = nil)
        all = condition ? where_sql(everything, condition) : everything
        records(column.is_a?(Array) ? by_several(all, ids, column) : with_values(all, column, ids))
      end

      # @param values [Array<Object>]
      # @return [Object] the rows of the relation or dataset that have one of the values in the column
      def with_one_of(scope, column, values)
        with_values(limited(scope), column, values)
      end

      # @param sql [String] an SQL condition
      # @return [Object] the relation or dataset, within its own limit
      def matching(scope, sql)
        where_sql(limited(scope), sql)
      end

      # @param further [Array<String>] additional SQL in the plan's statements: the scopes of resources
      # @return [Array<String>, nil] all tables that the plan's statements read; nil if that is not certain
      def tables(plan, scope, further = [])
        tables_read(plan).call(key(scope), further)
      end

      # @return [Array(String, Array), nil] a shape and the values bound to it: scopes that are equal in both have the same SQL.
      #   nil if only the SQL can tell
      def bound(_scope)
        nil
      end

      # Everything that determines the rows of the scope in this request, for use in a cache key.
      # @param plan [Plan::FetchPlan, nil] adds what `key` adds
      # @return [Array(String, Array)] a shape, with which the statement always reads the same tables unless an
      #   association's scope changes, and values
      def identity(scope, plan = nil)
        found = bound(scope) or return [key(scope, plan), NO_VALUES]
        plan ? [found.first, [found.last, tables_read(plan).scopes, *surroundings]] : found
      end

      # @return [String, nil] why {#tables} returns nil for a statement
      def tables_reason(plan, scope, further = [])
        tables_read(plan).reason(key(scope), further)
      end

      # @return [Array<String>, String] the statement's tables, or why they are uncertain
      def statement_tables(sql)
        @statements.call(sql)
      end

      private

      attr_reader :adapter, :model, :types, :dialect

      def primary_key = adapter.primary_key

      def tables_read(plan)
        TablesRead.for(plan, adapter)
      end

      # The relation or dataset of the scope; for {Ids::Chosen} the one narrowed to the ids.
      def narrowed(scope)
        scope.is_a?(Ids::Chosen) ? scope.relation : scope
      end

      def by_several(scope, ids, columns)
        values = Ids.divided(ids, columns, types)
        columns.one? ? with_values(scope, columns.first, values.flatten(1)) : with_tuples(scope, columns, values)
      end

      # Whether the driver and the column's type certainly read an id in the same way.
      def kept_ids?(ids, column)
        return types.integer?(column) if dialect.name == :sqlite

        dialect.name == :postgres && !types.coder(column).nil? && Ids.of_type?(ids, types.database_type(column))
      end

      def limited?(scope)
        window(scope).any?
      end

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

      def among_ids(column, condition)
        [dialect.among(types.qualified(column), types.database_type(column)), condition].compact.join(" AND ")
      end
    end
  end
end
