# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # The dataset of an association of the owner of {OwnerKey}, as SQL.
      #
      #   lazy = LazyStatement.new(dataset, fallback_order: [Sequel.qualify(:roles, :id)])
      #   lazy.sql("`roles`.`id`")   # => SELECT `roles`.`id` FROM `roles` … WHERE (`assignments`.`user_id` = 1847362915) ORDER BY …
      #
      # An association without an order is read in the order of its keys: any order is right then, and this one is the same each time.
      class LazyStatement
        def initialize(dataset, fallback_order:)
          @dataset = dataset.naked
          @fallback = fallback_order
          freeze
        end

        # @param list [String]
        # @param single [Boolean] whether it is a to-one association
        # @return [String]
        def sql(list, single: false)
          (single ? first : ordered).select(::Sequel.lit(list)).sql
        end

        # @return [String] all columns of the related rows, with the limit, distinctness and order of the dataset
        def whole_sql
          ordered.sql
        end

        # @return [Boolean] whether it means the same for many owners at once
        def plain?
          @dataset.opts.values_at(:limit, :offset, :distinct, :group, :having, :compounds).none?
        end

        private

        # The first of its rows is the first of its different rows; PostgreSQL would want the order among what is selected.
        def first
          @dataset.opts[:offset] || @dataset.opts[:distinct]&.any? ? @dataset.limit(1) : @dataset.clone(distinct: nil).limit(1)
        end

        def ordered
          plain? && @dataset.opts[:order].nil? && @fallback.any? ? @dataset.order(*@fallback) : @dataset
        end
      end
    end
  end
end
