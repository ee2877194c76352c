# frozen_string_literal: true

module Castellan
  module Serve
    # The bytes of a long document as a Rack body. It is no Array, because Puma copies the one String of an Array twice before it
    # writes it (up to 256 kB), and what is copied in each request makes the collector of a grown process run that much more often;
    # what answers to `each` is written as it is.
    #
    #   Body.of("{\"data\":[]}")         # => ["{\"data\":[]}"]: short, one write together with the header fields
    #   Body.of(bytes).each { |part| … }  # yields the bytes once
    class Body
      LONG = 16 * 1024 # bytes from which a second write costs less than the copies

      # @param bytes [String]
      # @return [#each]
      def self.of(bytes)
        bytes.bytesize < LONG ? [bytes] : new(bytes)
      end

      def initialize(bytes)
        @bytes = bytes
        freeze
      end

      # @yieldparam bytes [String]
      def each
        yield @bytes
      end

      # For middleware that asks whether the whole body is there.
      # @return [Array<String>]
      def to_ary
        [@bytes]
      end
    end
  end
end
