# frozen_string_literal: true

require "digest"
require "json"

module Castellan
  module Plan
    # A place in an ordered list, as the opaque text of the Cursor Pagination profile. Frozen.
    #
    #   cursor = Cursor.new(["First", "7"])         # the values of the row's sort columns, its key last
    #   text = cursor.text("posts|title asc")       # => "aUx0…"
    #   Cursor.parse("posts|title asc", text)       # => the same; nil for the text of another order, or a mutated one
    #
    # The values are those of the row when it was read, so a cursor stays valid when the row is changed or deleted. Its text has a
    # checksum, not a signature: a client that computes one reaches no rows that it may not list anyway.
    class Cursor
      # The URI of the profile.
      PROFILE = "https://jsonapi.org/profiles/ethanresnick/cursor-pagination"
      CHECK = 6 # bytes
      LONGEST = 4_000
      private_constant :CHECK, :LONGEST

      # @param order [String] names the list's type and order
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

      # @return [Array<String, Numeric, nil>] as the driver returned them
      attr_reader :values

      # @param side [Integer] 0: on the row, 1: just after it, so that `page[before]` has the row, -1: just before it
      def initialize(values, side = 0)
        @values = values.freeze
        @side = side
        freeze
      end

      # @return [Boolean] whether `page[before]` or `page[after]` of the cursor has the row itself
      def includes_row?(parameter) = @side == (parameter == :before ? 1 : -1)

      # @return [String] for a URL
      def text(order)
        json = JSON.generate([values, @side])
        [self.class.send(:check, order, json) + json.b].pack("m0").tr("+/", "-_").delete("=")
      end
    end
  end
end
