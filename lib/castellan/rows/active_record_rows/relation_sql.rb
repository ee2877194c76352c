# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Builds the SELECT that reads a relation's rows, each once. Omits what concerns instances (includes,
      # strict_loading, readonly).
      #
      #   RelationSql.select(RelationSql.once(User.joins(:roles).distinct), %("users"."id"))
      module RelationSql
        WINDOW = %i[order limit offset lock readonly].freeze
        INSTANCES = %i[includes preload eager_load].freeze
        ALIAS = /\bAS\s+["`]?(\w+)/i
        NONE = [].freeze
        private_constant :WINDOW, :INSTANCES, :ALIAS, :NONE

        module_function

        # @return [String] SQL
        def select(relation, list)
          relation.reselect(Arel.sql(list)).to_sql
        end

        # The relation for loading records: keeps what the caller selects, preloads and extends, unless a
        # limit would count duplicate rows of a join.
        # @return [ActiveRecord::Relation]
        def records(relation)
          return relation unless relation.limit_value || relation.offset_value
          return relation if relation.eager_loading? || !multiplies?(relation)

          within(relation).merge(relation.only(:preload, :includes, *(:select if renames?(relation))))
        end

        # Turns a relation with duplicate rows into `WHERE id IN (relation)`, with its order and limit.
        # @return [ActiveRecord::Relation]
        def once(relation)
          plain = ExpandedOrder.of(relation)
          plain = plain.left_outer_joins(*joined(relation)) if relation.eager_loading?
          multiplies?(plain) ? within(without(plain, INSTANCES)) : without(plain, [*INSTANCES, :select])
        end

        # Returns the relation itself if it has none of these values, because `except` copies it.
        def without(relation, values)
          relation.values.keys.intersect?(values) ? relation.except(*values) : relation
        end

        # Wraps a limited relation so that its rows can be ordered again; its other values stay.
        # @return [ActiveRecord::Relation]
        def chosen(relation)
          relation.unscope(:order, :limit, :offset).merge(among(relation.klass, once(relation)))
        end

        # @return [Boolean] whether a selected expression is named like a column
        def renames?(relation)
          relation.select_values.any? { |selected| aliases(selected).any? { |name| relation.klass.columns_hash.key?(name) } }
        end

        def aliases(selected)
          case selected
          when Arel::Nodes::As then [selected.right.to_s]
          when String then selected.scan(ALIAS).flatten
          else NONE
          end
        end

        def joined(relation)
          relation.eager_load_values + (relation.references_values.any? ? relation.includes_values : [])
        end

        def multiplies?(relation)
          relation.distinct_value || relation.group_values.any? ||
            (relation.klass.primary_key && (relation.joins_values.any? || relation.left_outer_joins_values.any?))
        end

        def within(relation)
          model = relation.klass
          joined = OrderOfJoined.needed?(relation)
          return OrderOfJoined.apply(relation, keys(model)).merge(relation.only(*(WINDOW - [:order]))) if joined

          among(model, relation.unscope(:order, :limit, :offset, :select).except(:distinct)).merge(window(relation))
        end

        # @param chosen [ActiveRecord::Relation] a relation of the same table
        # @return [ActiveRecord::Relation] the rows whose keys it selects
        def among(model, chosen)
          columns = keys(model).map { |key| model.arel_table[key] }
          ids = chosen.reselect(*columns)
          return model.unscoped.where(columns.first.name => ids) if columns.size == 1

          model.unscoped.where(Arel::Nodes::In.new(Arel::Nodes::Grouping.new(columns), ids.arel.ast))
        end

        def keys(model)
          keys = Array(model.primary_key)
          return keys if keys.any?

          raise DeclarationError, "#{model}: a scope with a join, DISTINCT, GROUP BY or LIMIT needs a primary key (a view has none)"
        end

        # Keeps order, limit, offset, lock and readonly for the outer statement.
        def window(relation)
          relation.only(*WINDOW)
        end
      end
    end
  end
end
