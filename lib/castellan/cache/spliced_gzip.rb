# frozen_string_literal: true

require "zlib"

module Castellan
  module Cache
    # Writes gzip of a body with holes from pieces that were compressed before.
    #
    #   pieces = SplicedGzip.compress(body.unpack(cuts))                       # once, when the document is kept
    #   SplicedGzip.fill(pieces.bodies, pieces.sums, ["true", "false"])        # for each viewer: one gzip member
    #
    # Each piece is deflated by itself (a full flush before and behind it), and each value is a *stored* block between
    # two pieces (RFC 1951, section 3.2.4). The checksum is combined from those of the pieces. Values of a viewer are thus
    # never compressed together with the rest, so that the length of a response tells nothing about them (BREACH).
    module SplicedGzip
      HEADER = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".b.freeze # deflate, no name, no time, Unix (RFC 1952)
      LONGEST_BLOCK = 65_535
      Pieces = Struct.new(:bodies, :sums)
      private_constant :HEADER, :LONGEST_BLOCK

      module_function

      # @return [Pieces] deflated, and checksum and length of each as they were
      def compress(pieces)
        deflate = Zlib::Deflate.new(Compression::GZIP_LEVEL, -Zlib::MAX_WBITS)
        last = pieces.size - 1
        bodies = pieces.each_with_index.map { |piece, index| deflate.deflate(piece, index == last ? Zlib::FINISH : Zlib::FULL_FLUSH) }
        Pieces.new(bodies, pieces.flat_map { |piece| [Zlib.crc32(piece), piece.bytesize] })
      ensure
        deflate&.close
      end

      # @param bodies [Array<String>]
      # @param sums [Array<Integer>]
      # @param values [Array<String>] one fewer than there are bodies
      # @return [String] binary: a gzip member
      def fill(bodies, sums, values)
        written = HEADER + bodies.first
        checksum, size = sums
        values.each_with_index do |value, index|
          length = value.bytesize
          length <= LONGEST_BLOCK ? written << [0, length, length ^ 0xffff].pack("Cvv") << value : store(written, value)
          written << bodies[index + 1]
          size += length + (piece = sums[(index * 2) + 3])
          checksum = Zlib.crc32_combine(Zlib.crc32(value, checksum), sums[(index * 2) + 2], piece)
        end
        written << [checksum, size & 0xffff_ffff].pack("VV")
      end

      def store(written, value)
        (0...value.bytesize).step(LONGEST_BLOCK) do |offset|
          block = value.byteslice(offset, LONGEST_BLOCK)
          written << [0, block.bytesize, block.bytesize ^ 0xffff].pack("Cvv") << block
        end
      end
      private_class_method :store
    end
  end
end
