# frozen_string_literal: true

module Castellan
  module Rows
    # A page of a scope that has a limit of its own: a client never sees more than the scope has.
    #
    #   Window.within(25, nil, 10, 20)   # => [5, 20]    the third page of ten, of 25 rows
    module Window
      module_function

      # @param own_limit [Integer, String, nil] the scope's own
      # @param own_offset [Integer, String, nil]
      # @param limit [Integer, nil] of the page
      # @param offset [Integer, nil]
      # @return [Array(Integer, Integer)] limit (nil: none) and offset of both together
      def within(own_limit, own_offset, limit, offset)
        offset = offset.to_i
        left = own_limit && [own_limit.to_i - offset, 0].max
        [[limit, left].compact.min, own_offset.to_i + offset]
      end
    end
  end
end
