# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Builds the SQL that ActiveRecord would run to load an association lazily.
      # The owner is that of {OwnerKey}.
      #
      #   lazy = LazyStatement.new(relation, fallback_order: [Assignment.arel_table[:id]])
      #   lazy.sql(%("roles"."id"))   # => SELECT "roles"."id" FROM "roles" … WHERE … = 1847362915 ORDER BY …
      #
      # Orders an association without an order by its keys, so that documents are deterministic.
      class LazyStatement
        # @param cast [String, nil] the SQL type that the owner's key is cast to
        def initialize(relation, fallback_order:, cast: nil)
          @relation = relation.except(:includes, :preload, :eager_load)
          @relation = @relation.left_outer_joins(*relation.eager_load_values) if relation.eager_load_values.any?
          @fallback = fallback_order
          @cast = cast
          freeze
        end

        # @param list [String] the SELECT list
        # @param single [Boolean] whether the association is to-one
        # @return [String]
        def sql(list, single: false)
          relation = single ? first : ordered(@fallback)
          cast(relation.reselect(Arel.sql(list)).to_sql)
        end

        # @return [String] SELECT of all related columns, with the scope's limit, DISTINCT and order
        def whole_sql
          key = @relation.klass.primary_key
          cast(ordered(key ? [@relation.klass.arel_table[key]] : []).to_sql)
        end

        # @return [Boolean] whether it can read many owners at once (no LIMIT, DISTINCT or GROUP BY)
        def plain?
          @relation.limit_value.nil? && @relation.offset_value.nil? && !@relation.distinct_value && @relation.group_values.empty?
        end

        private

        # The first row is also the first distinct row; with DISTINCT, PostgreSQL requires the order columns
        # in the SELECT list.
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
