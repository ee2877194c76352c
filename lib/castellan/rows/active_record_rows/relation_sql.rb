# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # A caller's relation as the statement that reads rows: what concerns instances (includes, strict_loading, readonly)
      # is left out, and a join to many never multiplies.
      #
      #   RelationSql.select(RelationSql.once(User.joins(:roles).distinct), %("users"."id"))
      module RelationSql
        WINDOW = %i[order limit offset lock readonly].freeze
        INSTANCES = %i[includes preload eager_load].freeze
        ALIAS = /\bAS\s+["`]?(\w+)/i
        NONE = [].freeze
        private_constant :WINDOW, :INSTANCES, :ALIAS, :NONE

        module_function

        # @return [String]
        def select(relation, list)
          relation.reselect(Arel.sql(list)).to_sql
        end

        # The same for whoever loads records: what the caller's relation says of instances (what it selects, preloads, extends)
        # holds, unless its rows have to be told apart before they are counted.
        # @return [ActiveRecord::Relation]
        def records(relation)
          return relation unless relation.limit_value || relation.offset_value
          return relation if relation.eager_loading? || !multiplies?(relation)

          within(relation).merge(relation.only(:preload, :includes, *(:select if renames?(relation))))
        end

        # A relation that may answer a row twice becomes `WHERE id IN (the relation)`, in the relation's order and with its limit.
        # @return [ActiveRecord::Relation]
        def once(relation)
          plain = ExpandedOrder.of(relation)
          plain = plain.left_outer_joins(*joined(relation)) if relation.eager_loading?
          multiplies?(plain) ? within(without(plain, INSTANCES)) : without(plain, [*INSTANCES, :select])
        end

        # The same relation where it has none of them, because a copy costs more than the look.
        def without(relation, values)
          relation.values.keys.intersect?(values) ? relation.except(*values) : relation
        end

        # The rows that its limit leaves, for whoever wants them in another order; what else the relation says holds.
        # @return [ActiveRecord::Relation]
        def chosen(relation)
          relation.unscope(:order, :limit, :offset).merge(among(relation.klass, once(relation)))
        end

        # @return [Boolean] whether one of the selected expressions has the name of a column
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

        # @param chosen [ActiveRecord::Relation] of the same rows
        # @return [ActiveRecord::Relation] of the rows that are in it
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

        # What the outer statement keeps: order, limit and offset.
        def window(relation)
          relation.only(*WINDOW)
        end
      end
    end
  end
end
