# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # The statement that ActiveRecord would run to load an association lazily, for the owner of {OwnerKey}.
      #
      #   lazy = LazyStatement.new(relation, fallback_order: [Assignment.arel_table[:id]])
      #   lazy.sql(%("roles"."id"))   # => SELECT "roles"."id" FROM "roles" … WHERE "assignments"."user_id" = 1847362915 ORDER BY …
      #
      # An association without an order is read in the order of its keys: any order is right then, and this one is the same each time.
      class LazyStatement
        # @param cast [String, nil] the type to which the owner's key is to be brought
        def initialize(relation, fallback_order:, cast: nil)
          @relation = relation.except(:includes, :preload, :eager_load)
          @relation = @relation.left_outer_joins(*relation.eager_load_values) if relation.eager_load_values.any?
          @fallback = fallback_order
          @cast = cast
          freeze
        end

        # @param list [String]
        # @param single [Boolean] whether it is a to-one association
        # @return [String]
        def sql(list, single: false)
          relation = single ? first : ordered(@fallback)
          cast(relation.reselect(Arel.sql(list)).to_sql)
        end

        # @return [String] all columns of the related rows, with the limit, distinctness and order of the scope
        def whole_sql
          key = @relation.klass.primary_key
          cast(ordered(key ? [@relation.klass.arel_table[key]] : []).to_sql)
        end

        # @return [Boolean] whether it means the same for many owners at once
        def plain?
          @relation.limit_value.nil? && @relation.offset_value.nil? && !@relation.distinct_value && @relation.group_values.empty?
        end

        private

        # The first of its rows is the first of its different rows; PostgreSQL would want the order among what is selected.
        def first
          @relation.offset_value ? @relation.limit(1) : @relation.except(:distinct).limit(1)
        end

        def cast(sql)
          @cast ? OwnerKey.cast(sql, @cast) : sql
        end

        def ordered(fallback)
          @relation.order_values.empty? && fallback.any? && @relation.group_values.empty? ? @relation.order(*fallback) : @relation
        end
      end
    end
  end
end
