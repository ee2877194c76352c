# frozen_string_literal: true

module Castellan
  module Rows
    # Calls a declaration's block with the row or record and, if the block takes it, the viewer.
    #
    #   Blocks.call(->(row) { row.title }, row, viewer)
    #   Blocks.call(:title.to_proc, record, viewer)   # one argument, despite its parameters
    #   Blocks.call(->(row, viewer) { viewer.sees?(row) }, row, viewer)
    module Blocks
      SYMBOL = [[:req], [:rest]].freeze
      private_constant :SYMBOL

      module_function

      # @return [Object] the block's result
      def call(block, row, viewer)
        takes_viewer?(block) ? block.call(row, viewer) : block.call(row)
      end

      # @return [Boolean]
      def takes_viewer?(block)
        parameters = block.parameters
        parameters != SYMBOL && parameters.count { |kind, _| %i[req opt].include?(kind) } > 1
      end

      # @return [Proc] a block of one argument, so that the parameters are checked once and not for each row
      def bound(block, viewer)
        takes_viewer?(block) ? ->(row) { block.call(row, viewer) } : block
      end
    end
  end
end
