# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Splits a relation into batches for {Batches} and holds the connection meanwhile.
      #
      #   division = ActiveRecordRows.for(User).division
      #   division.key_order(User.order(id: :desc))              # => :desc
      #   division.after(User.order(:id).limit(1_000), 7, :asc)  # WHERE "users"."id" > 7
      class Division
        def initialize(adapter)
          @model = adapter.model
          @key = adapter.primary_key
          @dialect = adapter.dialect
          freeze
        end

        # @return [Boolean] whether the key can be filtered; false with GROUP BY or HAVING
        def possible?(scope)
          scope.group_values.empty? && scope.having_clause.empty?
        end

        # @return [Symbol, nil] :asc or :desc if the scope has no order or is ordered by its key
        def key_order(scope)
          return if scope.limit_value || scope.offset_value
          return :asc if scope.order_values.empty?

          term = scope.order_values.first if scope.order_values.size == 1
          direction(term) if term.is_a?(Arel::Nodes::Ordering) && key?(term.expr)
        end

        # @return [ActiveRecord::Relation] the rows after this key
        def after(scope, id, direction)
          key = @model.arel_table[@key]
          scope.where(direction == :asc ? key.gt(id) : key.lt(id))
        end

        # @return [ActiveRecord::Relation]
        def unlimited(scope)
          scope.except(:limit, :offset)
        end

        # Releases the connection after the block, unless the caller held it. ActiveRecord before 7.2 keeps
        # leases.
        def apart
          pool = @model.connection_pool
          held = pool.active_connection?
          yield
        ensure
          pool.release_connection unless held
        end

        # Runs the block in the caller's transaction, or in a new one where all statements see the same rows.
        def snapshot(&block)
          return yield if @model.connection_pool.active_connection? && @model.connection.transaction_open?

          @model.transaction(**(@dialect.name == :postgres ? { isolation: :repeatable_read } : {}), &block)
        end

        private

        def key?(expression)
          expression.is_a?(Arel::Attributes::Attribute) && expression.name.to_s == @key.to_s && expression.relation == @model.arel_table
        end

        def direction(term)
          case term
          when Arel::Nodes::Ascending then :asc
          when Arel::Nodes::Descending then :desc
          end
        end
      end
    end
  end
end
