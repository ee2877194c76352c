# frozen_string_literal: true

module Castellan
  module Rows
    # Narrows, orders, pages, counts and loads relations or datasets of one model, and returns their SQL.
    #
    #   scopes = Rows.for(User).scopes
    #   scopes.page(scopes.order(User.where(active: true), [%i[email asc]]), limit: 20, offset: 40)
    #   scopes.select_sql(User.order(:id).limit(2), "id")   # => SELECT id FROM "users" ORDER BY … LIMIT 2
    #
    # {ActiveRecordRows::Scopes} and {SequelRows::Scopes} inherit from it and call the ORM. Frozen.
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
        @subqueries = BoundedCache.new
        freeze
      end

      # @return [String, nil] the quoted table as the alias of a subquery; nil for a table with its schema
      def own_name = (types.table unless types.table.match?(/["`]\.["`]/))

      # @return [Array<String>] the ids of the scope's rows, in its order
      def ids(scope, column = primary_key)
        scope = narrowed(scope)
        return adapter.instances.read(load(scope), column).map(&:to_s) if reason(scope)

        adapter.session { |session| session.column(session.rows(select_sql(scope, types.qualified(column))), 0).map(&:to_s) }
      end

      # @param ids [Array<String, Integer>] unchecked ids from the client
      # @return [Object, Ids::Chosen] {Ids::Chosen} if the scope adds no conditions to the model
      def by_ids(scope, ids, column = primary_key)
        return by_several(limited(scope), ids, column) if column.is_a?(Array)

        ids = types.integer?(column) ? Ids.integers(ids) : possible(ids, column)
        return with_values(limited(scope), column, ids) unless whole?(scope) && kept_ids?(ids, column)

        Ids::Chosen.new(scope, ids, column.to_sym, ->(all, chosen) { with_values(all, column, chosen) })
      end

      # @param ids [Array] values of `column`
      # @param condition [String, nil] an additional SQL condition
      # @return [Array<Object>] records; ignores a default scope, because
      #   associations may link to rows that it hides
      def load_by_ids(ids, column = primary_key, condition = nil)
        all = condition ? where_sql(everything, condition) : everything
        records(column.is_a?(Array) ? by_several(all, ids, column) : with_values(all, column, ids))
      end

      # @param order [Array<(Symbol, Symbol), (ComparedColumn, Symbol)>] columns with :asc or
      #   :desc; if empty, the scope's order
      # @param key [Symbol, Array<Symbol>, nil] identifies a row if the model has no primary key (a view)
      # @return [Object] ordered by the primary key last, so that pages never overlap
      def order(scope, order, key: nil)
        scope = limited(scope) if order.any?
        terms = order.map { |column, direction| term(scope, column, direction) }
        terms.concat(((keys || Array(key)) - order.map(&:first)).map { |name| term(scope, name, :asc) })
        return scope if terms.empty?

        order.empty? ? further_order(scope, terms) : reorder(scope, terms)
      end

      # @return [Object] a page of the rows within the scope's own limit
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

      # @param sql [String, nil] the result of {#count_sql}, if it is known
      # @return [Integer] the number of distinct rows within the scope's own limit
      def count(scope, sql = nil)
        scope = narrowed(scope)
        all = unlimited(scope)
        counted(scope, value(sql || count_sql(all) || "SELECT COUNT(*) FROM (#{once_sql(all)}) castellan_counted").to_i)
      end

      # @return [String, nil] a SELECT of the number of rows without the scope's
      #   own limit; nil if only {#count} works
      def count_sql(scope)
        all = bare(unordered(unlimited(narrowed(scope))))
        return if reason(all) || grouped?(all) || (keys.nil? && distinct?(all))

        select(once(all), "COUNT(*)")
      end

      # @param count [Integer] the result of {#count_sql}
      # @return [Integer] the result of {#count}
      def counted(scope, count)
        limit, offset = window(narrowed(scope))
        [[count - offset.to_i, 0].max, limit&.to_i].compact.min
      end

      # @return [Symbol, nil] :asc or :desc if the scope has no order or is ordered by the primary key
      def key_order(scope)
        return if limited?(scope)

        terms = terms(scope)
        return :asc if terms.empty?

        %i[asc desc].find { |direction| by_key(scope, direction).include?(terms.first) } if terms.one?
      end

      # @return [Object] the rows whose column has one of the values
      def with_one_of(scope, column, values) = with_values(limited(scope), column, values)

      # @return [Array(Integer, Integer)] limit and offset of a relation or dataset, nil where it has none
      def window(scope)
        scope.respond_to?(:limit_value) ? [scope.limit_value, scope.offset_value] : scope.opts.values_at(:limit, :offset)
      end

      # @param sql [String] an SQL condition
      # @return [Object] the rows within the scope's own limit that match
      def matching(scope, sql) = where_sql(limited(scope), sql)

      # @param joins [String, nil] see {JoinedPaths}
      # @return [String] a SELECT of `list` that returns each row once; only for scopes without a `reason`
      def select_sql(scope, list, joins = nil) = select(repeats?(scope) ? once(scope) : plain(scope), list, joins)

      # @param condition [String, nil] an additional SQL condition
      # @return [String] a SELECT of `list` by ids, with the ids as one bound value
      def select_by_ids_sql(list, column, joins = nil, condition = nil)
        condition = [dialect.among(types.qualified(column), types.database_type(column)), condition].compact.join(" AND ")
        return "SELECT #{list} FROM #{[types.table, joins].compact.join(" ")} WHERE #{condition}" if constant_by_ids?

        select(where_sql(everything, condition), list, joins)
      end

      # @return [String] a SELECT of these columns for exactly the scope's rows, for use in `IN (…)`
      def subquery_sql(scope, columns)
        known = bound(scope) or return write_subquery(scope, columns)
        key = [known, columns]
        @subqueries[key] || write_subquery(scope, columns).tap { |sql| @subqueries.fetch(key) { sql.freeze } if Identity.small?(known) }
      end

      # @param subquery [String] a SELECT of these columns
      # @return [String] an SQL condition on the model's table
      def among_sql(columns, subquery)
        columns = columns.map { |column| types.qualified(column) }
        "#{columns.one? ? columns.first : "(#{columns.join(", ")})"} IN (#{subquery})"
      end

      # @param plan [Plan::FetchPlan, nil] adds everything else on which the rows
      #   depend, such as association scopes
      # @return [String] the exact SQL of the scope in this request, for use in a cache key
      def key(scope, plan = nil)
        sql = sql(narrowed(scope))
        plan ? [sql, *tables_read(plan).scopes, *surroundings].join("\n") : sql
      end

      # @return [Array(String, Array), nil] a shape and the values bound to it; scopes that are equal in both
      #   have the same SQL. nil if the SQL must be built to compare
      def bound(_scope) = nil

      # Identifies the rows of the scope in this request, for use in a cache key.
      # @return [Array(String, Array)] a shape and values. Statements of one shape read the same tables,
      #   unless an association's scope changes
      def identity(scope, plan = nil)
        found = bound(scope) or return [key(scope, plan), NO_VALUES]

        plan ? [found.first, [found.last, tables_read(plan).scopes, *surroundings]] : found
      end

      # @param found [Array(String, Array)] a result of {#constant_identity}
      # @return [Array(String, Array)] the result of {#identity} for it, without
      #   associations whose scopes may change
      def identity_of(found) = [found.first, [found.last, NO_VALUES, *surroundings]]

      # @return [Array(String, Array), nil] {#bound} of all rows; nil if it may change even if {#unscoped?}
      def constant_identity = bound(all)

      # @return [Boolean] whether {#constant_identity} currently identifies all rows
      def unscoped? = true

      # @return [Object, nil] an object that changes with {#identity_of} all rows; nil if only {#identity_of}
      #   shows changes, for example inside `connected_to` or `Time.use_zone`
      def default_context = nil

      # @return [Boolean] whether the model reads a subquery instead of a table
      def reads_subquery? = false

      # @return [String, nil] changes if the model gets another connection
      def connection_name = nil

      # @param further [Array<String>] additional SQL in the plan's statements: resource scopes
      # @return [Array<String>, String] all tables that the plan's statements read, or why they are uncertain
      def tables(plan, scope, further = []) = tables_read(plan).call(key(scope), further)

      # @return [Array<String>, String] the statement's tables, or why they are uncertain
      def statement_tables(sql) = @statements.call(sql)

      private

      attr_reader :adapter, :model, :types, :dialect

      def primary_key = adapter.primary_key
      def tables_read(plan) = TablesRead.for(plan, adapter)

      def narrowed(scope) = scope.is_a?(Ids::Chosen) ? scope.relation : scope

      def by_several(scope, ids, columns)
        values = Ids.divided(ids, columns, types)
        columns.one? ? with_values(scope, columns.first, values.flatten(1)) : with_values(scope, columns, values)
      end

      # Returns the ids that the database accepts.
      def possible(ids, _column) = ids

      # Returns whether the driver and the column's type certainly parse an id to the same value.
      def kept_ids?(ids, column)
        return types.integer?(column) if dialect.name == :sqlite

        dialect.name == :postgres && !types.coder(column).nil? && Ids.of_type?(ids, types.database_type(column))
      end

      def write_subquery(scope, columns)
        scope = bare(scope)
        if apart?(scope) || (@unreadable && limited?(scope)) # MySQL has no LIMIT in IN (SELECT …)
          list = columns.map { |column| "castellan_scope.#{types.quote(column)}" }.join(", ")
          return "SELECT #{list} FROM (#{sql(scope)}) AS castellan_scope"
        end

        select(limited?(scope) ? scope : unordered(scope), columns.map { |column| types.qualified(column) }.join(", "))
      end

      def limited?(scope) = window(scope).any?

      # Conditions on a scope with a limit apply to the rows within the limit.
      def limited(scope)
        return scope if scope.is_a?(Ids::Chosen) || window(scope).none?
        raise DeclarationError, "#{model.inspect}: a scope with LIMIT needs a primary key (a view has none)" unless keys

        where_sql(unordered(unlimited(scope)), among_sql(keys, subquery_sql(reason(scope) ? scope : once(scope), keys)))
      end

      def window_within(own_limit, own_offset, limit, offset)
        offset = offset.to_i
        left = own_limit && [own_limit.to_i - offset, 0].max
        [[limit, left].compact.min, own_offset.to_i + offset]
      end

      # Rewrites a scope that may return rows several times as `WHERE id
      # IN (scope)`, with its order and limit.
      def once(scope)
        return plain(scope) unless repeats?(scope)

        rows = plain(bare(unordered(unlimited(scope))))
        with_window(where_sql(fresh(scope), among_sql(keys, subquery_sql(rows, keys))), scope)
      end

      def once_sql(scope)
        keys ? "SELECT DISTINCT * FROM (#{subquery_sql(scope, keys)}) castellan_rows" : sql(unordered(scope))
      end

      # Applies the limit to keys, because a limit counts records and not the rows of a join.
      def at_keys(scope)
        limit, offset = window(scope)
        columns = keys.one? ? keys.first : keys
        found = values(unlimited(scope), columns).uniq.drop(offset.to_i)
        with_values(unlimited(scope), columns, limit ? found.first(limit) : found)
      end

      # Writes the shape of a relation or dataset and the values bound to it, without building its SQL.
      #
      # Equal shapes and values have the same SQL; equal shapes read the same tables.
      module Identity
        # Never occurs at the beginning of SQL.
        MARK = "\0"
        LONGEST = 4_096
        MOST_VALUES = 100
        private_constant :LONGEST, :MOST_VALUES

        # Kept SQL of many ids would fill the memory, and rarely repeats.
        # @param identity [Array] shape and values, perhaps with more around them
        # @return [Boolean] whether SQL may be kept for it
        def self.small?(identity)
          parts = identity.flatten
          parts.size <= MOST_VALUES && parts.sum { |part| part.is_a?(String) ? part.bytesize : 0 } <= LONGEST
        end

        private

        # Prefixed with its length, because the text may contain anything.
        def text(sql, shape)
          throw :unknown unless sql.is_a?(String)

          shape << " " << sql.bytesize.to_s << ":" << sql.to_str
        end

        # A subclass of String may be SQL, and PostgreSQL reads 'today' as a date, so
        # only the SQL shows the compared value.
        def value(value, bound)
          case value
          when Integer, true, false, nil then bound << value
          when Array then bound << value.each_with_object([]) { |inner, list| value(inner, list) }
          else value.instance_of?(String) && !StatementTables::DAY.match?(value) ? bound << value : throw(:unknown)
          end
        end
      end
    end
  end
end
