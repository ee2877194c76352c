# frozen_string_literal: true

module Castellan
  module Cache
    # The kept form of a document: its bytes, where the viewer's values go, and whether the requested record exists. Frozen.
    #
    #   envelope = Envelope.new(body: "{\"read\":}", cuts: "a8a*", numbers: [0], ids: ["7"])
    #   bytes = envelope.dump
    #   Envelope.load(bytes).body      # the same bytes, not copied
    #   Envelope.load("anything else") # => nil, a miss
    #
    # A binary format rather than Marshal, because a shared store is input: nothing can be read from it but parts of the body, small
    # numbers and ids. Bytes of another version or length are nil.
    class Envelope
      # "CE", the format, a zero | 1 where the record exists, else 0 | sizes of the cuts, the numbers, the ids, the sums and the body
      HEADER = "a4CL>L>L>L>Q>"
      HEADER_BYTESIZE = 29
      MAGIC = "CE\x04\x00".b.freeze
      SEPARATOR = "\0" # of ids
      CUTS = /\A(?:a\d{1,9})+a\*\z/
      NONE = [].freeze
      private_constant :SEPARATOR, :HEADER, :HEADER_BYTESIZE, :MAGIC, :CUTS, :NONE

      # @return [String] without the viewer's values
      attr_reader :body
      # @return [String, nil] a format of String#unpack that cuts the body at its holes; nil without holes
      attr_reader :cuts
      # @return [Array<Integer>] which value goes into each hole
      attr_reader :numbers
      # @return [Array<String>] whose value that is, as many as there are numbers
      attr_reader :ids

      # @return [Array<Integer>] of a compressed body with holes: see {SplicedGzip}
      attr_reader :sums

      # @return [Boolean]
      attr_reader :found

      # @param found [Boolean] false for the document of a single record that does not exist
      # @param numbers [Array<Integer>] below 65,536
      # @param ids [Array<String>] not empty and without a NUL
      # @param sums [Array<Integer>] two for each part of the body
      def initialize(body:, found: true, cuts: nil, numbers: NONE, ids: NONE, sums: NONE)
        @body = body
        @found = found
        @cuts = cuts
        @numbers = numbers
        @ids = ids
        @sums = sums
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
        start == HEADER_BYTESIZE ? new(body: body, found: found == 1) : with_holes(bytes, sizes, body, found == 1)
      end

      def self.with_holes(bytes, sizes, body, found)
        cuts, numbers, ids, sums = bytes.unpack("@#{HEADER_BYTESIZE}a#{sizes[0]}a#{sizes[1]}a#{sizes[2]}a#{sizes[3]}")
        return unless CUTS.match?(cuts) && ids.force_encoding(Encoding::UTF_8).valid_encoding?

        numbers = numbers.unpack("n*")
        sums = sums.unpack("L>*")
        ids = ids.split(SEPARATOR, -1)
        return if numbers.size != ids.size || cuts.count("a") != ids.size + 1 || ids.include?("")
        return unless sums.empty? || sums.size == 2 * (ids.size + 1)

        new(body: body, found: found, cuts: cuts, numbers: numbers, ids: ids, sums: sums)
      end
      private_class_method :with_holes

      # @return [String, nil] binary; nil if an id or a number cannot be written
      def dump
        return if @ids.any? { |id| id.empty? || id.include?(SEPARATOR) } || @numbers.any? { |number| number > 0xffff }

        parts = [@cuts.to_s, @numbers.pack("n*"), @ids.join(SEPARATOR), @sums.pack("L>*"), @body]
        parts.unshift([MAGIC, @found ? 1 : 0, *parts.map(&:bytesize)].pack(HEADER)).map(&:b).join
      end
    end
  end
end
