# frozen_string_literal: true

module Castellan
  module Rows
    # Selects rows of a model by ids, without building a relation. The statement is always the same.
    #
    #   chosen = ChosenIds.new(User.all, [7, 8], :id) { |scope, ids| scope.where(id: ids) }
    #   chosen.ids        # => [7, 8]
    #   chosen.relation   # => User.where(id: [7, 8])
    #
    # Only for scopes without conditions, order and limit.
    class ChosenIds
      # @return [Object] the relation or dataset of all rows
      # @return [Array<Integer, String>] values of the column
      # @return [Symbol] the id column
      attr_reader :scope, :ids, :column

      # @yieldparam scope [Object] the relation or dataset of all rows
      # @yieldparam ids [Array<Integer, String>]
      # @yieldreturn [Object] the relation or dataset narrowed to the ids
      def initialize(scope, ids, column, &narrow)
        @scope = scope
        @ids = ids
        @column = column
        @narrow = narrow
      end

      # @return [Object] the relation or dataset narrowed to the ids
      def relation
        @relation ||= @narrow.call(scope, ids)
      end
    end
  end
end
