# frozen_string_literal: true

require "zlib"

module Castellan
  module Cache
    # Builds the gzip of a body with placeholders from precompressed pieces.
    #
    #   pieces = SplicedGzip.compress(body.unpack(cuts))                  # once per document
    #   SplicedGzip.fill(pieces.bodies, pieces.sums, ["true", "false"])   # for each viewer: one gzip member
    #
    # Each piece is deflated separately (with full flushes between them), and each value is a *stored* block
    # between two pieces (RFC 1951 §3.2.4). The checksum is combined from those of the pieces. A viewer's
    # values are never compressed together with the rest, so that the length of a response reveals nothing
    # about them (BREACH).
    module SplicedGzip
      HEADER = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".b.freeze # deflate, no name, no time, Unix (RFC 1952)
      LONGEST_BLOCK = 65_535
      Pieces = Struct.new(:bodies, :sums)
      private_constant :HEADER, :LONGEST_BLOCK

      module_function

      # @param pieces [Array<String>]
      # @return [Pieces] the deflated pieces, and the checksum and length of each before compression
      def compress(pieces)
        deflate = Zlib::Deflate.new(Compression::GZIP_LEVEL, -Zlib::MAX_WBITS)
        last = pieces.size - 1
        bodies = pieces.each_with_index.map { |piece, index| deflate.deflate(piece, index == last ? Zlib::FINISH : Zlib::FULL_FLUSH) }
        Pieces.new(bodies, pieces.flat_map { |piece| [Zlib.crc32(piece), piece.bytesize] })
      ensure
        deflate&.close
      end

      # @param bodies [Array<String>] of {Pieces}
      # @param sums [Array<Integer>] of {Pieces}
      # @param values [Array<String>] one fewer than bodies
      # @return [String] a gzip member, binary
      def fill(bodies, sums, values)
        written = [HEADER, bodies.first]
        checksum, size = sums
        values.each_with_index do |value, index|
          length = value.bytesize
          length <= LONGEST_BLOCK ? written.push([0, length, length ^ 0xffff].pack("Cvv"), value) : store(written, value)
          written << bodies[index + 1]
          size += length + (piece = sums[(index * 2) + 3])
          checksum = Zlib.crc32_combine(Zlib.crc32(value, checksum), sums[(index * 2) + 2], piece)
        end
        (written << [checksum, size & 0xffff_ffff].pack("VV")).join
      end

      def store(written, value)
        (0...value.bytesize).step(LONGEST_BLOCK) do |offset|
          block = value.byteslice(offset, LONGEST_BLOCK)
          written.push([0, block.bytesize, block.bytesize ^ 0xffff].pack("Cvv"), block)
        end
      end
      private_class_method :store
    end
  end
end
