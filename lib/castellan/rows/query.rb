# frozen_string_literal: true

module Castellan
  module Rows
    # Holds one SELECT that a {Reading} sends: its SQL, its ids, and the block that receives its rows.
    class Query
      # @return [Object] the adapter of the rows
      # @return [String] SQL
      # @return [Array<Integer, String>, IdList, nil] the ids for the SQL's one placeholder
      # @return [Boolean] whether the SQL is one of few that repeat
      # @return [Boolean] whether an index finds the rows of one id
      attr_reader :adapter, :sql, :ids, :kept, :indexed

      # @return [Array<Array>, PG::Result, nil] nil until the query has run
      attr_accessor :rows

      # @yieldparam rows [Array<Array>, PG::Result]
      def initialize(adapter, sql, ids, kept = false, indexed = false, &use) # rubocop:disable Style/OptionalBooleanParameter -- a Hash less
        @adapter = adapter
        @sql = sql
        @ids = ids
        @kept = kept
        @indexed = indexed
        @use = use
      end

      # Calls the block with the rows.
      def use
        @use&.call(rows)
      end

      # Discards the block, so that the rows are ignored.
      def drop
        @use = nil
      end
    end
  end
end
