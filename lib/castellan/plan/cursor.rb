# frozen_string_literal: true

require "digest/sha2"
require "json"

module Castellan
  module Plan
    # Represents a position in an ordered list, as a string of the Cursor Pagination profile. Frozen.
    #
    #   cursor = Cursor.new(["First", "7"])         # values of the row's sort columns and, last, its key
    #   text = cursor.text("posts|title asc")       # => "aUx0…"
    #   Cursor.parse("posts|title asc", text)       # => the same; nil if changed, or for another order
    #
    # Stays valid if the row is changed or deleted, because it contains the values that were read. The string
    # has a checksum, not a signature: a client that forges one can only reach rows that it may list anyway.
    class Cursor
      # The URI of the profile.
      PROFILE = "https://jsonapi.org/profiles/ethanresnick/cursor-pagination"
      CHECK = 6 # bytes
      LONGEST = 4_000
      private_constant :CHECK, :LONGEST

      # @param order [String] identifies the list's type and order
      # @return [Cursor, nil]
      def self.parse(order, text)
        return unless text.bytesize <= LONGEST && text.match?(/\A[A-Za-z0-9_-]+\z/)

        bytes = text.tr("-_", "+/").unpack1("m")
        check, json = bytes.byteslice(0, CHECK), bytes.byteslice(CHECK..).to_s
        return unless check == check(order, json)

        values, side = JSON.parse(json.force_encoding(Encoding::UTF_8))
        new(values, side)
      rescue JSON::ParserError
        nil
      end

      def self.check(order, json) = Digest::SHA256.digest("#{order}\n#{json}".b).byteslice(0, CHECK)
      private_class_method :check

      # @return [Array<String, Numeric, nil>] the driver's values
      attr_reader :values

      # @param side [Integer] 0: on the row; 1: just after it, so that `page[before]`
      #   includes the row; -1: just before it
      def initialize(values, side = 0)
        @values = values.freeze
        @side = side
        freeze
      end

      # @return [Boolean] whether `page[before]` or `page[after]` with this cursor includes the row itself
      def includes_row?(parameter) = @side == (parameter == :before ? 1 : -1)

      # @return [String] the cursor for a URL
      def text(order)
        json = JSON.generate([values, @side])
        [self.class.send(:check, order, json) + json.b].pack("m0").tr("+/", "-_").delete("=")
      end
    end
  end
end
