# frozen_string_literal: true

module Castellan
  module Rows
    # The rows of these ids out of all rows of a model: what needs no relation, because the statement is always the same.
    #
    #   chosen = ChosenIds.new(User.all, [7, 8], :id) { |scope, ids| scope.where(id: ids) }
    #   chosen.ids        # => [7, 8]
    #   chosen.relation   # => User.where(id: [7, 8]), for whoever narrows further
    #
    # Not for a scope with a condition, an order or a limit of its own.
    class ChosenIds
      # @return [Object] the relation or dataset of all
      # @return [Array<Integer, String>] as the column's values
      # @return [Symbol] the column that holds them
      attr_reader :scope, :ids, :column

      # @yieldparam scope
      # @yieldparam ids
      # @yieldreturn [Object] the relation or dataset of the ids alone
      def initialize(scope, ids, column, &narrow)
        @scope = scope
        @ids = ids
        @column = column
        @narrow = narrow
      end

      # @return [Object]
      def relation
        @relation ||= @narrow.call(scope, ids)
      end
    end
  end
end
