# frozen_string_literal: true

module Castellan
  class Resource
    # Whether a member is written: for this viewer, or for this row and this viewer. Frozen.
    #
    #   Condition.of(->(viewer) { viewer&.admin? })                                         # decided once a document
    #   Condition.of(->(row, viewer) { row.id == viewer&.id }, columns: %i[id])             # decided for each row
    #   Condition.of(->(record, viewer) { record.visible_to?(viewer) })                     # needs the model's instance
    class Condition
      # @return [Computed, nil] what decides for each row; nil where the viewer alone does
      # @return [Proc, nil] what decides for the viewer
      attr_reader :by_row, :by_viewer

      # @param block [Proc, nil] of one argument, the viewer, or of two, the row and the viewer
      # @return [Condition, nil]
      def self.of(block, columns: nil, location: nil)
        new(block, columns, location) if block
      end

      def initialize(block, columns, location)
        unless block.respond_to?(:call)
          raise DeclarationError.new("if: must be a block of the viewer, or of the row and the viewer, got #{block.inspect}",
                                     location: location)
        end

        @by_viewer = block if columns.nil? && block.arity == 1
        @by_row = Computed.of(block, columns: columns, location: location) unless @by_viewer
        freeze
      end

      # @return [Boolean] whether this viewer sees the member at all
      def shown?(viewer)
        by_viewer.nil? || by_viewer.call(viewer) ? true : false
      end
    end
  end
end
