# frozen_string_literal: true

module Castellan
  class Document
    # A stream that would have to remember more related records than it was allowed to. Raised before the first byte where the first
    # piece is enough to know; later it ends the body.
    class TooManyIncluded < Error
      # @param found [Integer] so far
      # @param most [Integer]
      def initialize(found, most)
        super("the document includes more than #{most} related records (#{found} so far): include less, narrow the scope, " \
              "or allow more with stream(most_included: #{most * 10})")
      end
    end
  end
end
