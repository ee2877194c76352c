# frozen_string_literal: true

module Castellan
  module Serve
    # The bytes of a long document as a Rack body that Puma does not copy: of an Array with one String it makes two copies (up to
    # 256 kB), and the garbage makes the collector of a large process run more often.
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

      # Called by middleware that buffers the body.
      # @return [Array<String>]
      def to_ary
        [@bytes]
      end
    end
  end
end
