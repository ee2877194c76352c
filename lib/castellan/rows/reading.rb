# frozen_string_literal: true

module Castellan
  module Rows
    # What one run of a plan has read so far, and for whom. Of one request and one thread.
    class Reading
      # @return [Object, nil] given to the blocks that take it
      # @return [Hash{Plan::Node => Plan::RowSet::Table}] by identity
      attr_reader :viewer, :tables

      def initialize(viewer)
        @viewer = viewer
        @tables = {}.compare_by_identity
      end

      # @param rows [Array<Array>, PG::Result]
      # @param session [ColumnValues]
      # @return [Array<Integer, String>, IdList] those of the first column, read once for all relationships
      def ids(rows, session)
        @ids ||= {}.compare_by_identity
        @ids[rows] ||= IdList.of(rows) || session.ids(rows, 0)
      end
    end
  end
end
