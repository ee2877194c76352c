# frozen_string_literal: true

module Castellan
  module Rows
    # Calls the blocks of a declaration with the row or record and, where the block takes it, the viewer.
    #
    #   Blocks.call(->(row) { row.title }, row, viewer)
    #   Blocks.call(:title.to_proc, record, viewer)                                # a symbol's block takes one, whatever it says
    #   Blocks.call(->(row, viewer) { viewer.sees?(row) }, row, viewer)
    module Blocks
      SYMBOL = [[:req], [:rest]].freeze
      private_constant :SYMBOL

      module_function

      # @return what the block returns
      def call(block, row, viewer)
        takes_viewer?(block) ? block.call(row, viewer) : block.call(row)
      end

      # @return [Boolean]
      def takes_viewer?(block)
        parameters = block.parameters
        parameters != SYMBOL && parameters.count { |kind, _| %i[req opt].include?(kind) } > 1
      end

      # @return [Proc] of one argument, so that what a block takes is looked at once and not for each row
      def bound(block, viewer)
        takes_viewer?(block) ? ->(row) { block.call(row, viewer) } : block
      end
    end
  end
end
