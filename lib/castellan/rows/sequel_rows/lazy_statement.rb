# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Builds the SQL of an association's dataset, for the owner of {OwnerKey}.
      #
      #   lazy = LazyStatement.new(dataset, fallback_order: [Sequel.qualify(:roles, :id)])
      #   lazy.sql("`roles`.`id`")   # => SELECT `roles`.`id` FROM `roles` … WHERE (… = 1847362915) ORDER BY …
      #
      # Orders an association without an order by its keys, so that documents are deterministic.
      class LazyStatement
        def initialize(dataset, fallback_order:)
          @dataset = dataset.naked
          @fallback = fallback_order
          freeze
        end

        # @param list [String] the SELECT list
        # @param single [Boolean] whether the association is to-one
        # @return [String]
        def sql(list, single: false)
          (single ? first : ordered).select(::Sequel.lit(list)).sql
        end

        # @return [String] SELECT of all related columns, with the dataset's limit, DISTINCT and order
        def whole_sql
          ordered.sql
        end

        # @return [Boolean] whether it can read many owners at once (no LIMIT, DISTINCT, GROUP BY or UNION)
        def plain?
          @dataset.opts.values_at(:limit, :offset, :distinct, :group, :having, :compounds).none?
        end

        private

        # The first row is also the first distinct row; with DISTINCT, PostgreSQL requires the order columns
        # in the SELECT list.
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
