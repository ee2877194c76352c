# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Narrows, orders, pages and counts the caller's relation, and returns its SQL.
      #
      #   rows = ActiveRecordRows.for(User)
      #   rows.page(rows.order(User.where(active: true), [%i[email asc]]), limit: 20, offset: 40)
      #   rows.select_sql(User.order(:id).limit(2), "id")   # => SELECT id FROM "users" ORDER BY "users"."id" ASC LIMIT 2
      module Scopes
        # @param object [Class, ActiveRecord::Relation]
        # @return [ActiveRecord::Relation]
        def scope(object = model)
          object.is_a?(Class) ? object.all : object
        end

        # @return [Boolean] whether the object can be passed to {#fetch}
        def scope?(object)
          object.is_a?(::ActiveRecord::Relation) && object.klass <= model
        end

        # @return [Boolean] whether the scope aliases something as a column, which requires records
        def renames?(scope)
          RelationSql.renames?(narrowed(scope))
        end

        # @param ids [Array<String, Integer>]
        # @return [ActiveRecord::Relation, ChosenIds] the latter if the scope adds no conditions to the model
        def by_ids(scope, ids, column = primary_key)
          return by_several(limited(scope), ids, column) if column.is_a?(Array)

          coder = coder(column)
          ids = Ids.integers(ids) if coder == :integer
          return limited(scope).where(column => ids) unless whole?(scope) && kept_ids?(ids, column, coder)

          ChosenIds.new(scope, ids, column.to_sym) { |all, chosen| all.where(column => chosen) }
        end

        # @param order [Array<(Symbol, Symbol)>] columns with :asc or :desc; if empty, the scope's order
        # @param key [Symbol, Array<Symbol>, nil] identifies a row if the model has no primary key (a view)
        # @return [ActiveRecord::Relation] ordered by the primary key last, so that pages never overlap
        def order(scope, order, key: nil)
          scope = narrowed(scope)
          scope = limited(scope) if order.any?
          terms = order.map { |column, direction| attribute(column).public_send(direction) }
          keys = Array(model.primary_key || key).map(&:to_sym) - order.map { |column, _| column.to_sym }
          terms.concat(keys.map { |key| attribute(key).asc })
          return scope if terms.empty?

          order.empty? ? scope.order(*terms) : scope.reorder(*terms)
        end

        # @return [ActiveRecord::Relation] a page within the scope's own limit
        def page(scope, limit:, offset:)
          scope = narrowed(scope)
          limit, offset = window_within(scope.limit_value, scope.offset_value, limit, offset)
          scope = scope.limit(limit) if limit
          scope = scope.offset(offset) if offset.positive?
          scope
        end

        # @return [Integer] the number of distinct rows, within the scope's own limit
        def count(scope)
          once = RelationSql.once(narrowed(scope)).unscope(:order, :lock)
          return once.count unless once.limit_value || once.offset_value

          keys = Array(model.primary_key)
          model.unscoped.from(keys.any? ? once.select(*keys) : once, :castellan_counted).count
        end

        # @param plan [Plan::FetchPlan, nil] adds the scopes of its associations, the time zone and the shard
        # @return [String] the exact SQL of the scope in this request, for use in a cache key
        def scope_key(scope, plan = nil)
          sql = narrowed(scope).to_sql # the relation memoizes its SQL
          plan ? [sql, *tables_read(plan).scopes, ::Time.zone&.name, model.current_shard].join("\n") : sql
        end

        # @return [Array<Symbol>, nil] the primary key's columns
        def keys
          keys = Array(model.primary_key).map(&:to_sym)
          keys if keys.any?
        end

        # @param sql [String] an SQL condition
        # @return [ActiveRecord::Relation]
        def where_sql(scope, sql)
          scope.where(Arel.sql(sql))
        end

        # @return [Boolean] whether the relation adds only conditions and an order to the model
        def plain?(relation)
          relation.klass == model && (relation.values.keys - %i[where order references extending]).empty?
        end

        # @param columns [Array<Symbol>]
        # @return [String] SELECT of these columns for exactly the relation's rows, for use in `IN (…)`
        def subquery_sql(relation, columns)
          limited = relation.limit_value || relation.offset_value
          relation = relation.left_outer_joins(*RelationSql.joined(relation)) if relation.eager_loading?
          relation = relation.except(:includes, :preload, :eager_load, :lock)
          if relation.select_values.any? || (relation.distinct_value && limited)
            list = columns.map { |column| "castellan_scope.#{quote(column)}" }.join(", ")
            return "SELECT #{list} FROM (#{relation.to_sql}) AS castellan_scope"
          end

          RelationSql.select(limited ? relation : relation.except(:order), columns.map { |column| qualified(column) }.join(", "))
        end

        # @param joins [String, nil] see {JoinedPaths}
        # @return [String] SELECT of that list for the scope, each row once
        def select_sql(scope, list, joins = nil)
          once = RelationSql.once(narrowed(scope))
          RelationSql.select(joins ? once.joins(joins) : once, list)
        end

        # @return [Boolean] whether a join can be added. False for locked rows, for a custom FROM, and without
        #   an order, because a join would change the order in which the database returns the rows
        def joinable?(scope)
          relation = narrowed(scope)
          relation.order_values.any? && !relation.values.keys.intersect?(%i[lock from])
        end

        private

        def by_several(scope, ids, columns)
          values = RecordIds.divided(ids, columns, self)
          return scope.none if values.empty?

          columns.one? ? scope.where(columns.first => values.flatten(1)) : scope.where(columns.map(&:name) => values)
        end

        # Conditions on a scope with a limit apply to the rows within the limit.
        def limited(scope)
          scope.is_a?(::ActiveRecord::Relation) && (scope.limit_value || scope.offset_value) ? RelationSql.chosen(scope) : scope
        end

        # Default scopes, STI, `none`, `readonly` and `scoping` blocks are values of a relation too.
        def whole?(scope)
          scope.is_a?(::ActiveRecord::Relation) && scope.klass == model && scope.values.empty? && constant_by_ids?
        end

        # Whether the driver and the column's type certainly read an id in the same way.
        def kept_ids?(ids, column, coder)
          return coder == :integer if dialect.name == :sqlite

          dialect.name == :postgres && !coder.nil? && Ids.of_type?(ids, database_type(column))
        end

        def attribute(name)
          model.arel_table[column_name(name)]
        end
      end
    end
  end
end
