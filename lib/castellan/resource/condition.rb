# frozen_string_literal: true

module Castellan
  class Resource
    # Decides whether a member is written: for a viewer, or for a row and a viewer. Frozen.
    #
    #   Condition.of(->(viewer) { viewer&.admin? })                               # called once per document
    #   Condition.of(->(row, viewer) { row.id == viewer&.id }, columns: %i[id])   # called for each row
    #   Condition.of(->(record, viewer) { record.visible_to?(viewer) })           # needs the record
    class Condition
      TAKEN = %i[req opt rest].freeze
      private_constant :TAKEN

      # @return [Computed, nil] the condition for each row; nil if it depends on the viewer alone
      # @return [Proc, nil] the condition for the viewer
      attr_reader :by_row, :by_viewer

      # @param block [Proc, Method, nil] takes the viewer, or the row and the viewer
      # @param columns [Array<Symbol>, nil] the columns that it reads; a block with
      #   one parameter then receives the row
      # @param shared [Boolean] whether other blocks use the columns too; a block with one
      #   parameter then receives the viewer
      # @param pure [Boolean, nil] whether it depends on these columns only;
      #   nil: the resource's `pure` applies
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

      # @return [Boolean] whether this viewer may see the member at all
      def shown?(viewer)
        by_viewer.nil? || by_viewer.call(viewer) ? true : false
      end

      private

      def called_with_one?(block)
        return true unless block.lambda?

        block.parameters.any? { |kind, _| TAKEN.include?(kind) } && block.parameters.count { |kind, _| kind == :req } <= 2
      end

      # Symbol#to_proc has two parameters ([[:req], [:rest]]) but takes one argument.
      def of_row?(block)
        block.parameters.count { |kind, _| %i[req opt].include?(kind) } > 1
      end
    end
  end
end
