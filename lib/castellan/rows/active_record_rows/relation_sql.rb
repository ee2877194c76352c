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
        ALIAS = /\bAS\s+["`]?(\w+)/i
        NONE = [].freeze
        private_constant :WINDOW, :ALIAS, :NONE

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

          within(relation).merge(relation.only(:preload, :includes))
        end

        # A relation that may answer a row twice becomes `WHERE id IN (the relation)`, in the relation's order and with its limit.
        # @return [ActiveRecord::Relation]
        def once(relation)
          plain = ExpandedOrder.of(relation).except(:includes, :preload, :eager_load, :references)
          plain = plain.left_outer_joins(*joined(relation)) if relation.eager_loading?
          multiplies?(plain) ? within(plain) : plain.except(:select)
        end

        # The rows that its limit leaves, for whoever wants them in another order.
        # @return [ActiveRecord::Relation]
        def chosen(relation)
          model = relation.klass
          model.unscoped.where(key(model) => once(relation).reselect(model.arel_table[key(model)]))
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
          key = key(model)
          joined = OrderOfJoined.needed?(relation)
          return OrderOfJoined.apply(relation, key).merge(relation.only(*(WINDOW - [:order]))) if joined

          ids = relation.unscope(:order, :limit, :offset, :select).except(:distinct)
          model.unscoped.where(key => ids.reselect(model.arel_table[key])).merge(window(relation))
        end

        def key(model)
          key = model.primary_key
          return key if key.is_a?(String)

          raise DeclarationError, "#{model}: a scope with a join, DISTINCT, GROUP BY or LIMIT needs a primary key of one column"
        end

        # What the outer statement keeps: order, limit and offset.
        def window(relation)
          relation.only(*WINDOW)
        end
      end
    end
  end
end
