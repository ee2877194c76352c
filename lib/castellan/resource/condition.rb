# frozen_string_literal: true

module Castellan
  class Resource
    # Decides whether a member is written: for a viewer, or for a row and a viewer. Frozen.
    #
    #   Condition.of(->(viewer) { viewer&.admin? })                                         # decided once a document
    #   Condition.of(->(row, viewer) { row.id == viewer&.id }, columns: %i[id])             # decided for each row
    #   Condition.of(->(record, viewer) { record.visible_to?(viewer) })                     # needs the model's instance
    class Condition
      TAKEN = %i[req opt rest].freeze
      private_constant :TAKEN

      # @return [Computed, nil] what decides for each row; nil where the viewer alone does
      # @return [Proc, nil] what decides for the viewer
      attr_reader :by_row, :by_viewer

      # @param block [Proc, Method, nil] of one argument, the viewer, or of two, the row and the viewer
      # @param columns [Array<Symbol>, nil] what it reads of the row; a block of one argument gets that row then
      # @param shared [Boolean] whether the columns are for other blocks too: then a block of one argument is the viewer's
      # @param pure [Boolean, nil] whether it reads those columns and nothing else; nil: as the resource says
      # @return [Condition, nil]
      def self.of(block, columns: nil, shared: false, pure: nil, location: nil)
        new(block, columns, shared, pure, location) if block
      end

      def initialize(condition, columns, shared, pure, location)
        block = Computed.block_of(condition)
        unless block && called_with_one?(block)
          raise DeclarationError.new("if: must be a block of the viewer, or of the row and the viewer, got #{condition.inspect}",
                                     location: location)
        end

        @by_viewer = block if (columns.nil? || shared) && !of_row?(block)
        @by_row = Computed.of(block, columns: columns, pure: pure, location: location) unless @by_viewer
        freeze
      end

      # @return [Boolean] whether this viewer sees the member at all
      def shown?(viewer)
        by_viewer.nil? || by_viewer.call(viewer) ? true : false
      end

      private

      def called_with_one?(block)
        !block.lambda? || block.parameters.any? { |kind, _| TAKEN.include?(kind) }
      end

      # The block of a Symbol has two parameters ([[:req], [:rest]]), but takes one argument.
      def of_row?(block)
        block.parameters.count { |kind, _| %i[req opt].include?(kind) } > 1
      end
    end
  end
end
