# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Splits a dataset into batches for {Batches}.
      #
      #   division = SequelRows.for(User).division
      #   division.key_order(User.order(Sequel.desc(:id)))   # => :desc
      class Division
        SERVER = :read_only
        private_constant :SERVER

        def initialize(adapter)
          @database = adapter.database
          @table = adapter.scope.first_source_alias
          @key = adapter.primary_key
          @postgres = adapter.dialect.name == :postgres
          freeze
        end

        # @return [Boolean] whether the key can be filtered; false with GROUP BY, HAVING or UNION
        def possible?(scope)
          scope.opts.values_at(:group, :having, :compounds).none?
        end

        # @return [Symbol, nil] :asc or :desc if the scope has no order or is ordered by its key
        def key_order(scope)
          return if scope.opts[:limit] || scope.opts[:offset]

          order = scope.opts[:order] || []
          return :asc if order.empty?

          direction(order.first) if order.size == 1
        end

        # @return [Sequel::Dataset] the rows after this key
        def after(scope, id, direction)
          key = ::Sequel.qualify(@table, @key)
          scope.where(direction == :asc ? key > id : key < id)
        end

        # @return [Sequel::Dataset]
        def unlimited(scope)
          scope.unlimited
        end

        # Sequel checks out a connection for each statement, so there is none to release.
        def apart
          yield
        end

        # Runs the block in the caller's transaction, or in a new one where all statements see the same rows.
        def snapshot(&block)
          return yield if @database.in_transaction?(server: SERVER)

          @database.transaction(server: SERVER, **(@postgres ? { isolation: :repeatable } : {}), &block)
        end

        private

        def direction(term)
          return key?(term) ? :asc : nil unless term.is_a?(::Sequel::SQL::OrderedExpression)

          (term.descending ? :desc : :asc) if key?(term.expression) && term.nulls.nil?
        end

        def key?(expression)
          return expression == @key unless expression.is_a?(::Sequel::SQL::QualifiedIdentifier)

          expression.column.to_s == @key.to_s && expression.table.to_s == @table.to_s
        end
      end
    end
  end
end
