# frozen_string_literal: true

module Castellan
  module Rows
    # Narrows, orders, pages, counts and loads relations or datasets of one model, and returns their SQL.
    # {ActiveRecordRows::Scopes} and {SequelRows::Scopes} inherit from it and have the calls of the ORM. Frozen.
    #
    #   scopes = Rows.for(User).scopes
    #   scopes.page(scopes.order(User.where(active: true), [%i[email asc]]), limit: 20, offset: 40)
    #   scopes.select_sql(User.order(:id).limit(2), "id")   # => SELECT id FROM "users" ORDER BY "users"."id" ASC LIMIT 2
    class Scopes
      NO_VALUES = [].freeze
      private_constant :NO_VALUES

      # @return [Array<Symbol>, nil] the primary key's columns
      attr_reader :keys

      # @param keys [Array<Symbol>]
      def initialize(adapter, keys)
        @adapter = adapter
        @model = adapter.model
        @types = adapter.types
        @dialect = adapter.dialect
        @unreadable = dialect.reason
        @keys = keys if keys.any?
        @statements = StatementTables.new(adapter)
        freeze
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

        Ids::Chosen.new(scope, ids, column.to_sym, ->(all, chosen) { with_values(all, column, chosen) })
      end

      # @param ids [Array] values of `column`
      # @param condition [String, nil] an additional SQL condition
      # @return [Array<Object>] records; associations link to rows that a default scope hides, so it does not apply
      def load_by_ids(ids, column = primary_key, condition = nil)
        all = condition ? where_sql(everything, condition) : everything
        records(column.is_a?(Array) ? by_several(all, ids, column) : with_values(all, column, ids))
      end

      # @param order [Array<(Symbol, Symbol), (ComparedColumn, Symbol)>] columns with :asc or :desc; if empty, the scope's order
      # @param key [Symbol, Array<Symbol>, nil] identifies a row if the model has no primary key (a view)
      # @return [Object] ordered by the primary key last, so that pages never overlap
      def order(scope, order, key: nil)
        scope = limited(scope) if order.any?
        terms = order.map { |column, direction| term(scope, column, direction) }
        terms.concat(((keys || Array(key)) - order.map(&:first)).map { |name| term(scope, name, :asc) })
        return scope if terms.empty?

        order.empty? ? further_order(scope, terms) : reorder(scope, terms)
      end

      # @return [Object] a page within the scope's own limit
      def page(scope, limit:, offset:)
        own = window(scope)
        limit, offset = window_within(*own, limit, offset) if own.any?
        return where_sql(scope, "1 = 0") if limit&.zero?

        scope = scope.limit(limit) if limit
        offset&.positive? ? scope.offset(offset) : scope
      end

      # @return [Object] the rows after this key
      def after(scope, id, direction)
        where_sql(scope, "#{types.qualified(primary_key)} #{direction == :asc ? ">" : "<"} #{types.literal(id)}")
      end

      # @return [Integer] the number of distinct rows, within the scope's own limit
      def count(scope)
        scope = narrowed(scope)
        all = unlimited(scope)
        counted(scope, value(count_sql(all) || "SELECT COUNT(*) FROM (#{once_sql(all)}) castellan_counted").to_i)
      end

      # @return [String, nil] a SELECT that counts, without the scope's own limit; nil if only {#count} can tell
      def count_sql(scope)
        all = bare(unordered(unlimited(narrowed(scope))))
        return if reason(all) || grouped?(all) || (keys.nil? && distinct?(all))

        select(once(all), "COUNT(*)")
      end

      # @param count [Integer] the result of `count_sql`
      # @return [Integer] what {#count} returns
      def counted(scope, count)
        limit, offset = window(narrowed(scope))
        [[count - offset.to_i, 0].max, limit&.to_i].compact.min
      end

      # @return [Symbol, nil] :asc or :desc if the scope has no order or is ordered by its key
      def key_order(scope)
        return if limited?(scope)

        terms = terms(scope)
        return :asc if terms.empty?

        %i[asc desc].find { |direction| by_key(scope, direction).include?(terms.first) } if terms.one?
      end

      # @param values [Array<Object>]
      # @return [Object] the rows of the relation or dataset that have one of the values in the column
      def with_one_of(scope, column, values) = with_values(limited(scope), column, values)

      # @return [Array(Integer, Integer)] limit and offset of a relation or dataset, or nil
      def window(scope)
        scope.respond_to?(:limit_value) ? [scope.limit_value, scope.offset_value] : scope.opts.values_at(:limit, :offset)
      end

      # @param sql [String] an SQL condition
      # @return [Object] the relation or dataset, within its own limit
      def matching(scope, sql) = where_sql(limited(scope), sql)

      # @param condition [String, nil] an additional SQL condition
      # @return [String] a SELECT of that list whose ids are one bound value
      def select_by_ids_sql(list, column, joins = nil, condition = nil)
        condition = [dialect.among(types.qualified(column), types.database_type(column)), condition].compact.join(" AND ")
        return "SELECT #{list} FROM #{[types.table, joins].compact.join(" ")} WHERE #{condition}" if constant_by_ids?

        select(where_sql(everything, condition), list, joins)
      end

      # @return [String] SELECT of these columns for exactly the scope's rows, for use in `IN (…)`
      def subquery_sql(scope, columns)
        scope = bare(scope)
        if apart?(scope)
          list = columns.map { |column| "castellan_scope.#{types.quote(column)}" }.join(", ")
          return "SELECT #{list} FROM (#{sql(scope)}) AS castellan_scope"
        end

        select(limited?(scope) ? scope : unordered(scope), columns.map { |column| types.qualified(column) }.join(", "))
      end

      # @param subquery [String] a SELECT of these columns
      # @return [String] an SQL condition on the model's table
      def among_sql(columns, subquery)
        columns = columns.map { |column| types.qualified(column) }
        "#{columns.one? ? columns.first : "(#{columns.join(", ")})"} IN (#{subquery})"
      end

      # @param plan [Plan::FetchPlan, nil] adds the scopes of its associations, and what else the rows depend on
      # @return [String] the exact SQL of the scope in this request, for use in a cache key
      def key(scope, plan = nil)
        sql = sql(narrowed(scope))
        plan ? [sql, *tables_read(plan).scopes, *surroundings].join("\n") : sql
      end

      # @return [Array(String, Array), nil] a shape and the values bound to it: scopes that are equal in both have the same SQL.
      #   nil if only the SQL can tell
      def bound(_scope) = nil

      # Everything that determines the rows of the scope in this request, for use in a cache key.
      # @return [Array(String, Array)] a shape, with which the statement always reads the same tables unless an
      #   association's scope changes, and values
      def identity(scope, plan = nil)
        found = bound(scope) or return [key(scope, plan), NO_VALUES]

        plan ? [found.first, [found.last, tables_read(plan).scopes, *surroundings]] : found
      end

      # @param found [Array(String, Array)] see {#constant_identity}
      # @return [Array(String, Array)] what {#identity} returns for it, without associations whose scopes may change
      def identity_of(found) = [found.first, [found.last, NO_VALUES, *surroundings]]

      # @return [Array(String, Array), nil] {#bound} of all rows; nil if it may differ in the next request, although {#unscoped?}
      def constant_identity = bound(all)

      # @return [Boolean] whether all rows are those of {#constant_identity}
      def unscoped? = true

      # @return [Object, nil] an object that stays the same as long as all rows have the same {#identity_of}; nil where only that can
      #   tell, as in a block of `connected_to` or `Time.use_zone`
      def default_context = nil

      # @param further [Array<String>] additional SQL in the plan's statements: the scopes of resources
      # @return [Array<String>, String] all tables that the plan's statements read, or why they are not certain
      def tables(plan, scope, further = []) = tables_read(plan).call(key(scope), further)

      # @return [Array<String>, String] the statement's tables, or why they are uncertain
      def statement_tables(sql) = @statements.call(sql)

      private

      attr_reader :adapter, :model, :types, :dialect

      def primary_key = adapter.primary_key
      def tables_read(plan) = TablesRead.for(plan, adapter)

      # The relation or dataset of the scope; for {Ids::Chosen} the one narrowed to the ids.
      def narrowed(scope) = scope.is_a?(Ids::Chosen) ? scope.relation : scope

      def by_several(scope, ids, columns)
        values = Ids.divided(ids, columns, types)
        columns.one? ? with_values(scope, columns.first, values.flatten(1)) : with_values(scope, columns, values)
      end

      # The ids that the database takes.
      def possible(ids, _column) = ids

      # Whether the driver and the column's type certainly read an id in the same way.
      def kept_ids?(ids, column)
        return types.integer?(column) if dialect.name == :sqlite

        dialect.name == :postgres && !types.coder(column).nil? && Ids.of_type?(ids, types.database_type(column))
      end

      def limited?(scope) = window(scope).any?

      # Conditions on a scope with a limit apply to the rows within the limit.
      def limited(scope)
        return scope if scope.is_a?(Ids::Chosen) || window(scope).none?
        raise DeclarationError, "#{model.inspect}: a scope with LIMIT needs a primary key (a view has none)" unless keys

        where_sql(unordered(unlimited(scope)), among_sql(keys, subquery_sql(reason(scope) ? scope : once(scope), keys)))
      end

      # Combines a page's window with the scope's own.
      # @return [Array(Integer, nil, Integer)] limit and offset
      def window_within(own_limit, own_offset, limit, offset)
        offset = offset.to_i
        left = own_limit && [own_limit.to_i - offset, 0].max
        [[limit, left].compact.min, own_offset.to_i + offset]
      end

      # A scope that returns rows several times becomes `WHERE id IN (scope)`, with its order and limit.
      def once(scope)
        return plain(scope) unless repeats?(scope)

        rows = plain(bare(unordered(unlimited(scope))))
        with_window(where_sql(fresh(scope), among_sql(keys, subquery_sql(rows, keys))), scope)
      end

      def once_sql(scope)
        keys ? "SELECT DISTINCT * FROM (#{subquery_sql(scope, keys)}) castellan_rows" : sql(unordered(scope))
      end

      # The scope without its limit, for the keys that are within it: a limit counts records, not the rows of a join.
      def at_keys(scope)
        limit, offset = window(scope)
        columns = keys.one? ? keys.first : keys
        found = values(unlimited(scope), columns).uniq.drop(offset.to_i)
        with_values(unlimited(scope), columns, limit ? found.first(limit) : found)
      end

      # Writes the shape of a relation or dataset and the values bound to it, so that its SQL need not be built: two of one shape
      # with equal values have the same SQL, and all of one shape read the same tables.
      module Identity
        # No SQL begins like this.
        MARK = "\0"

        private

        # With its length, because it may contain anything.
        def text(sql, shape)
          throw :unknown unless sql.is_a?(String)

          shape << " " << sql.bytesize.to_s << ":" << sql.to_str
        end

        # A subclass of String may be SQL, and PostgreSQL reads 'today' as a date: only the SQL shows what it is compared with.
        def value(value, bound)
          case value
          when Integer, true, false, nil then bound << value
          when Array then value.each { |inner| value(inner, bound) } && bound << value.size
          else value.instance_of?(String) && !StatementTables::DAY.match?(value) ? bound << value : throw(:unknown)
          end
        end
      end
    end
  end
end
