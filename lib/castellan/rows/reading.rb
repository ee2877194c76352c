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
    end
  end
end
