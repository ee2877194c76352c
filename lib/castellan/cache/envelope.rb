# frozen_string_literal: true

module Castellan
  module Cache
    # The kept form of a document: its bytes, where the viewer's values go, and whether the requested record exists. Frozen.
    #
    #   envelope = Envelope.new(body: "{\"read\":}", holes: [[8, "7"]])
    #   bytes = envelope.dump
    #   Envelope.load(bytes).body      # the same bytes, not copied
    #   Envelope.load("anything else") # => nil, a miss
    #
    # A binary format rather than Marshal, because a shared store is input: nothing can be read from it but a String and offsets
    # inside it. Bytes of another version or length are nil.
    class Envelope
      # "CE", the format, a zero | 1 where the record exists, else 0 | holes | size of their ids | size of the body
      HEADER = "a4CL>L>Q>"
      HEADER_BYTESIZE = 21
      MAGIC = "CE\x02\x00".b.freeze
      SEPARATOR = "\0".b.freeze # of ids
      private_constant :SEPARATOR, :HEADER, :HEADER_BYTESIZE, :MAGIC

      # @return [String] binary, without the viewer's values
      attr_reader :body
      # @return [Array<Integer>] where in the body a value goes, in bytes, ascending
      attr_reader :offsets
      # @return [Array<String>] whose value that is, as many as there are offsets
      attr_reader :ids

      # @return [Boolean]
      attr_reader :found

      # @param found [Boolean] false for the document of a single record that does not exist
      # @param holes [Array<Array(Integer, String)>] offset and id; ascending; an id is not empty and has no NUL
      def initialize(body:, found: true, holes: [])
        @body = body.encoding == Encoding::BINARY ? body : body.b
        @found = found
        @offsets = holes.map(&:first).freeze
        @ids = holes.map { |_, id| id.b }.freeze
        check
        freeze
      end

      # @param bytes [String, nil] from a store
      # @return [Envelope, nil] nil for anything that {#dump} did not write
      def self.load(bytes)
        return unless bytes.is_a?(String) && bytes.bytesize >= HEADER_BYTESIZE

        magic, found, count, ids_size, body_size = bytes.unpack(HEADER)
        start = HEADER_BYTESIZE + (count * 4) + ids_size
        return if magic != MAGIC || start + body_size != bytes.bytesize

        new(body: bytes.byteslice(start, body_size), found: found == 1, holes: load_holes(bytes, count, ids_size))
      rescue ArgumentError # offsets that do not fit
        nil
      end

      def self.load_holes(bytes, count, ids_size)
        return [] if count.zero?

        ids = bytes.byteslice(HEADER_BYTESIZE + (count * 4), ids_size).split(SEPARATOR)
        raise ArgumentError, "ids" if ids.size != count

        bytes.byteslice(HEADER_BYTESIZE, count * 4).unpack("L>*").zip(ids)
      end
      private_class_method :load_holes

      # @return [String] binary
      def dump
        ids = @ids.join(SEPARATOR)
        header = [MAGIC, @found ? 1 : 0, @offsets.size, ids.bytesize, @body.bytesize].pack(HEADER)
        header << @offsets.pack("L>*") << ids << @body
      end

      private

      def check
        return if @offsets.empty?

        unless @offsets.sort == @offsets && @offsets.first >= 0 && @offsets.last <= @body.bytesize
          raise ArgumentError, "holes must be ascending offsets into the body's #{@body.bytesize} bytes"
        end
        return unless @ids.any? { |id| id.empty? || id.include?(SEPARATOR) }

        raise ArgumentError, "the id of a hole must not be empty or contain a NUL: #{@ids.inspect[0, 200]}"
      end
    end
  end
end
