# frozen_string_literal: true

module Castellan
  class Document
    # Raised when a stream includes more records than `most_included`.
    #
    # Raised before the first byte if the first piece exceeds the limit; otherwise it ends the body.
    class TooManyIncluded < Error
      # @param found [Integer] the number of ids found so far
      # @param most [Integer]
      def initialize(found, most)
        super("the document includes more than #{most} related records (#{found} so far): include less, narrow the scope, " \
              "or allow more with stream(most_included: #{most * 10})")
      end
    end
  end
end
