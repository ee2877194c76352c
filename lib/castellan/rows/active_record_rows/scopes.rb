# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Narrows, orders, pages, counts and loads the caller's relation, and returns its SQL.
      #
      #   scopes = ActiveRecordRows.for(User).scopes
      #   scopes.page(scopes.order(User.where(active: true), [%i[email asc]]), limit: 20, offset: 40)
      #   scopes.select_sql(User.order(:id).limit(2), "id")   # => SELECT id FROM "users" ORDER BY "users"."id" ASC LIMIT 2
      class Scopes < Rows::Scopes
        WHOLE = %i[order references extending select limit].freeze
        private_constant :WHOLE

        def initialize(adapter)
          super
          freeze
        end

        # @param object [Class, ActiveRecord::Relation]
        # @return [ActiveRecord::Relation]
        def from(object)
          object.is_a?(Class) ? object.all : object
        end

        # @return [ActiveRecord::Relation] all rows
        def all
          model.all
        end

        # @return [Boolean] whether the object can be passed to {Adapter#fetch}
        def own?(object)
          object.is_a?(::ActiveRecord::Relation) && object.klass <= model
        end

        # @return [String, nil] why the scope's records must be loaded; nil if rows can be selected
        def reason(scope)
          @unreadable || RelationSql.reason(scope) unless scope.is_a?(Ids::Chosen)
        end

        # Loads the records of a scope, each once, in one statement through the caller's relation. A limit
        # counts records, not the rows of a join.
        # @param whole [Boolean] select all columns, unless the scope selects expressions
        # @return [Array<ActiveRecord::Base>]
        def load(scope, whole: false)
          relation = narrowed(scope)
          expressions = RelationSql.expressions?(relation)
          relation = relation.except(:select) if whole && !expressions
          plain = relation.group_values.empty? && !relation.distinct_value && !expressions
          relation = at_keys(relation) if plain && limited?(relation) && RelationSql.repeats?(relation)
          relation.to_a.uniq
        end

        # @param order [Array<(Symbol, Symbol), (ComparedColumn, Symbol)>] columns with :asc or :desc; if empty, the scope's order
        # @param key [Symbol, Array<Symbol>, nil] identifies a row if the model has no primary key (a view)
        # @return [ActiveRecord::Relation] ordered by the primary key last, so that pages never overlap
        def order(scope, order, key: nil)
          scope = limited(scope) if order.any?
          terms = order.map do |column, direction|
            (column.is_a?(ComparedColumn) ? Arel.sql(column.sql) : attribute(column)).public_send(direction)
          end
          keys = Array(model.primary_key || key).map(&:to_sym) - order.map(&:first)
          terms.concat(keys.map { |key| attribute(key).asc })
          return scope if terms.empty?

          order.empty? ? scope.order(*terms) : scope.reorder(*terms)
        end

        # @return [ActiveRecord::Relation] a page within the scope's own limit
        def page(scope, limit:, offset:)
          own = window(scope)
          limit, offset = window_within(*own, limit, offset) if own.any?
          scope = scope.limit(limit) if limit
          offset&.positive? ? scope.offset(offset) : scope
        end

        # @return [String, nil] a SELECT that counts; nil if only {#count} can tell
        def count_sql(scope)
          all = narrowed(scope).unscope(:order, :limit, :offset, :lock)
          once = RelationSql.once(all) unless reason(all)
          RelationSql.select(once, "COUNT(*)") unless once.nil? || once.distinct_value
        end

        # @param plan [Plan::FetchPlan, nil] adds the scopes of its associations, the time zone and the shard
        # @return [String] the exact SQL of the scope in this request, for use in a cache key
        def key(scope, plan = nil)
          sql = narrowed(scope).to_sql # the relation memoizes its SQL
          plan ? [sql, *tables_read(plan).scopes, *surroundings].join("\n") : sql
        end

        # (see Rows::Scopes#bound)
        def bound(scope)
          ScopeIdentity.of(narrowed(scope))
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

        # @return [String] SELECT of these columns for exactly the relation's rows, for use in `IN (…)`
        def subquery_sql(relation, columns)
          limited = limited?(relation)
          relation = RelationSql.joined(relation).except(:includes, :preload, :eager_load, :lock)
          if relation.select_values.any? || (relation.distinct_value && limited)
            list = columns.map { |column| "castellan_scope.#{types.quote(column)}" }.join(", ")
            return "SELECT #{list} FROM (#{relation.to_sql}) AS castellan_scope"
          end

          RelationSql.select(limited ? relation : relation.except(:order), columns.map { |column| types.qualified(column) }.join(", "))
        end

        # @param joins [String, nil] see {JoinedPaths}
        # @return [String] SELECT of that list for the scope, each row once; only without a {#reason}
        def select_sql(scope, list, joins = nil)
          once = RelationSql.once(scope)
          RelationSql.select(joins ? once.joins(joins) : once, list)
        end

        # @return [Boolean] whether a join can be added. False for locked rows, and without an order, because a
        #   join would change the order in which the database returns the rows
        def joinable?(scope)
          scope.order_values.any? && scope.lock_value.nil?
        end

        # @return [Symbol, Integer, nil] :all without conditions and limit, the limit, or nil if neither is known
        def extent(scope)
          return scope.limit_value.to_i if scope.limit_value
          return 0 if scope.distinct_value || scope.lock_value

          :all if (scope.values.keys - WHOLE).empty?
        end

        # @return [ActiveRecord::Relation] the rows after this key
        def after(scope, id, direction)
          key = attribute(primary_key)
          scope.where(direction == :asc ? key.gt(id) : key.lt(id))
        end

        # @return [ActiveRecord::Relation]
        def unlimited(scope)
          scope.except(:limit, :offset)
        end

        # @param condition [String, nil] an additional SQL condition
        # @return [String] a SELECT of that list whose ids are one bound value
        def select_by_ids_sql(list, column, joins = nil, condition = nil)
          condition = among_ids(column, condition)
          return "SELECT #{list} FROM #{[types.table, joins].compact.join(" ")} WHERE #{condition}" if constant_by_ids?

          all = joins ? model.unscoped.joins(joins) : model.unscoped
          RelationSql.select(all.where(Arel.sql(condition)), list)
        end

        # @return [Boolean] whether {#select_by_ids_sql} is constant; with STI, loading a subclass changes it
        def constant_by_ids?
          !model.finder_needs_type_condition?
        end

        # @return [Boolean] whether a default scope or STI hides rows of the table
        def hide_rows?
          ActiveRecordRows.default_scope?(model) || model.finder_needs_type_condition?
        end

        private

        def everything
          model.unscoped
        end

        # What the rows depend on besides the SQL.
        def surroundings
          [::Time.zone&.name, model.current_shard]
        end

        def records(relation)
          relation.to_a
        end

        def with_values(relation, column, values)
          relation.where(column => values)
        end

        def with_tuples(relation, columns, values)
          values.empty? ? relation.none : relation.where(columns.map(&:name) => values)
        end

        def possible(ids, _column)
          ids
        end

        def window(relation)
          [relation.limit_value, relation.offset_value]
        end

        def terms(relation)
          relation.order_values
        end

        def direction(term)
          (term.ascending? ? :asc : :desc) if term.is_a?(Arel::Nodes::Ordering) && key?(term.expr)
        end

        def count_of(relation)
          relation = relation.unscope(:order, :lock)
          RelationSql.reason(relation) ? count_apart(relation) : RelationSql.once(relation).count
        end

        # Conditions on a scope with a limit apply to the rows within the limit.
        def limited(scope)
          return scope unless scope.is_a?(::ActiveRecord::Relation) && window(scope).any?

          keys = RelationSql.keys(model)
          chosen = RelationSql.reason(scope) ? scope : RelationSql.once(scope)
          columns = keys.map { |key| types.qualified(key) }
          where_sql(scope.unscope(:order, :limit, :offset),
                    "#{columns.one? ? columns.first : "(#{columns.join(", ")})"} IN (#{subquery_sql(chosen, keys)})")
        end

        def key?(expression)
          expression.is_a?(Arel::Attributes::Attribute) && expression.relation == model.arel_table &&
            expression.name.to_s == model.primary_key
        end

        # The relation without its limit, for the keys that are within it.
        def at_keys(relation)
          keys = RelationSql.keys(model)
          found = relation.except(:limit, :offset, :select, :preload).pluck(*keys.map { |key| attribute(key) }).uniq
          found = found.drop(relation.offset_value.to_i)
          found = found.first(relation.limit_value) if relation.limit_value
          unlimited(relation).where((keys.one? ? keys.first : keys) => found)
        end

        def count_apart(relation)
          sql = keys ? "SELECT DISTINCT * FROM (#{subquery_sql(relation, keys)}) castellan_rows" : relation.to_sql
          ActiveRecordRows.lease(model) { |connection| connection.select_value("SELECT COUNT(*) FROM (#{sql}) castellan_counted") }.to_i
        end

        # Default scopes, STI, `none`, `readonly` and `scoping` blocks are values of a relation too.
        def whole?(scope)
          scope.is_a?(::ActiveRecord::Relation) && scope.klass == model && scope.values.empty? && constant_by_ids?
        end

        def attribute(name)
          model.arel_table[types.name(name)]
        end
      end
    end
  end
end
