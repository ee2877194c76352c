# frozen_string_literal: true

module Castellan
  module Cache
    # Holds a cached document and the positions of the viewer's values in its bytes. Frozen.
    #
    #   envelope = Envelope.new(body: "{\"read\":}", cuts: "a8a*", numbers: [0], ids: ["7"])
    #   bytes = envelope.dump
    #   Envelope.load(bytes).body      # the same bytes, not copied
    #   Envelope.load("anything else") # => nil, a miss
    #
    # The format is binary and not Marshal, because a shared store is untrusted input: {.load} can only return
    # parts of the body, small numbers and ids. It returns nil for bytes of another version or length.
    class Envelope
      # "CE", the format, a zero | 1 if the record exists, else 0 | sizes of cuts, numbers, ids, sums, tag and body
      HEADER = "a4CL>L>L>L>L>Q>"
      HEADER_BYTESIZE = 33
      MAGIC = "CE\x05\x00".b.freeze
      SEPARATOR = "\0" # of ids
      CUTS = /\A(?:a\d{1,9})+a\*\z/
      NONE = [].freeze
      private_constant :SEPARATOR, :HEADER, :HEADER_BYTESIZE, :MAGIC, :CUTS, :NONE

      # @return [String] without the viewer's values
      attr_reader :body
      # @return [String, nil] a String#unpack format that cuts the body at its placeholders; nil without any
      attr_reader :cuts
      # @return [Array<Integer>] the number of the value for each placeholder
      attr_reader :numbers
      # @return [Array<String>] the id of the record for each placeholder
      attr_reader :ids

      # @return [Array<Integer>] for a compressed body with placeholders: see {SplicedGzip}
      attr_reader :sums

      # @return [Boolean] whether the requested record exists
      attr_reader :found

      # @return [String, nil] a digest of the body, if bytes of the same key may differ
      attr_reader :tag

      # @param found [Boolean] false for the document of a single record that does not exist
      # @param numbers [Array<Integer>] below 65,536
      # @param ids [Array<String>] not empty and without a NUL
      # @param sums [Array<Integer>] two for each part of the body
      # @param tag [String, nil] not empty
      def initialize(body:, found: true, cuts: nil, numbers: NONE, ids: NONE, sums: NONE, tag: nil)
        @body = body
        @found = found
        @cuts = cuts
        @numbers = numbers
        @ids = ids
        @sums = sums
        @tag = tag
        freeze
      end

      # @param bytes [String, nil] from a store
      # @return [Envelope, nil] nil for anything that {#dump} did not write
      def self.load(bytes)
        return unless bytes.is_a?(String) && bytes.bytesize >= HEADER_BYTESIZE

        magic, found, *sizes, body_size = bytes.unpack(HEADER)
        start = HEADER_BYTESIZE + sizes.sum
        return if magic != MAGIC || start + body_size != bytes.bytesize

        body = bytes.byteslice(start, body_size).force_encoding(Encoding::UTF_8)
        return new(body: body, found: found == 1) if start == HEADER_BYTESIZE

        *parts, tag = bytes.unpack("@#{HEADER_BYTESIZE}#{sizes.map { |size| "a#{size}" }.join}")
        tag = nil if tag.empty?
        parts.all?(&:empty?) ? new(body: body, found: found == 1, tag: tag) : with_holes(*parts, tag, body, found == 1)
      end

      def self.with_holes(cuts, numbers, ids, sums, tag, body, found)
        return unless CUTS.match?(cuts) && ids.force_encoding(Encoding::UTF_8).valid_encoding?

        numbers = numbers.unpack("n*")
        sums = sums.unpack("L>*")
        ids = ids.split(SEPARATOR, -1)
        return if numbers.size != ids.size || cuts.count("a") != ids.size + 1 || ids.include?("")
        return unless sums.empty? || sums.size == 2 * (ids.size + 1)

        new(body: body, found: found, cuts: cuts, numbers: numbers, ids: ids, sums: sums, tag: tag)
      end
      private_class_method :with_holes

      # @return [String, nil] binary; nil if an id or a number cannot be written
      def dump
        return if @ids.any? { |id| id.empty? || id.include?(SEPARATOR) } || @numbers.any? { |number| number > 0xffff }

        parts = [@cuts.to_s, @numbers.pack("n*"), @ids.join(SEPARATOR), @sums.pack("L>*"), @tag.to_s, @body]
        parts.unshift([MAGIC, @found ? 1 : 0, *parts.map(&:bytesize)].pack(HEADER)).map(&:b).join
      end
    end
  end
end
