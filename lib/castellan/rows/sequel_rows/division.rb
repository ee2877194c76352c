# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # What {Batches} asks of a dataset, and how the connection is held meanwhile.
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

        # @return [Boolean] whether a condition on the key leaves the scope's other rows as they are
        def possible?(scope)
          scope.opts.values_at(:group, :having, :compounds).none?
        end

        # @return [Symbol, nil] :asc or :desc where the scope is read in the order of its key, or in none
        def key_order(scope)
          return if scope.opts[:limit] || scope.opts[:offset]

          order = scope.opts[:order] || []
          return :asc if order.empty?

          direction(order.first) if order.size == 1
        end

        # @return [Sequel::Dataset] the rows behind this key
        def after(scope, id, direction)
          key = ::Sequel.qualify(@table, @key)
          scope.where(direction == :asc ? key > id : key < id)
        end

        # @return [Sequel::Dataset]
        def unlimited(scope)
          scope.unlimited
        end

        # Sequel holds a connection for each statement alone.
        def apart
          yield
        end

        # One transaction, in which every statement sees the same rows: the caller's own, or one that begins here.
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
