# frozen_string_literal: true

module Castellan
  module Rows
    # One SELECT of a plan that a {Reading} sends: its text, its ids, and the block that takes its rows.
    class Query
      # @return [Object] the adapter of the rows
      # @return [String]
      # @return [Array<Integer, String>, IdList, nil] the ids that the text's one placeholder stands for
      # @return [Boolean] whether the text is one of few that come again
      # @return [Boolean] whether an index finds the rows of one id
      attr_reader :adapter, :sql, :ids, :kept, :indexed

      # @return [Array<Array>, PG::Result, nil] once they were read
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

      # Does with the rows what is to be done.
      def use
        @use&.call(rows)
      end

      # The rows are not wanted any more.
      def drop
        @use = nil
      end
    end
  end
end
