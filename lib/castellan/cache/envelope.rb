# frozen_string_literal: true

module Castellan
  module Cache
    # What is kept of a document: its bytes, where the viewer's values go, and its validators. Frozen.
    #
    #   envelope = Envelope.new(body: "{\"read\":}", holes: [[8, "7"]], etag: "\"v1\"", last_modified: Time.at(0))
    #   bytes = envelope.dump
    #   Envelope.load(bytes).body      # the same bytes, not copied
    #   Envelope.load("anything else") # => nil, a miss
    #
    # A binary format of its own rather than Marshal, because what comes from a shared store is input: all that can be read
    # from it is a String, offsets inside it, and a time. Bytes of another version or length are nil.
    class Envelope
      # "CE", the format, a zero | size of the tag | microseconds of the date | holes | size of their ids | size of the body
      HEADER = "a4L>q>L>L>Q>"
      HEADER_BYTESIZE = 32
      MAGIC = "CE\x01\x00".b.freeze
      NO_TIME = -(1 << 63)
      SEPARATOR = "\0".b.freeze # of ids
      private_constant :SEPARATOR, :HEADER, :HEADER_BYTESIZE, :MAGIC, :NO_TIME

      # @return [String] binary, without the viewer's values
      attr_reader :body
      # @return [Array<Integer>] where in the body a value goes, in bytes, ascending
      attr_reader :offsets
      # @return [Array<String>] whose value that is, as many as there are offsets
      attr_reader :ids
      # @return [String, nil]
      attr_reader :etag
      # @return [Time, nil] in UTC, to the microsecond
      attr_reader :last_modified

      # @param holes [Array<Array(Integer, String)>] offset and id; ascending; an id is not empty and has no NUL
      def initialize(body:, holes: [], etag: nil, last_modified: nil)
        @body = body.encoding == Encoding::BINARY ? body : body.b
        @offsets = holes.map(&:first).freeze
        @ids = holes.map { |_, id| id.b }.freeze
        @etag = etag
        @last_modified = last_modified
        check
        freeze
      end

      # @param bytes [String, nil] what a store gave back
      # @return [Envelope, nil] nil for anything that {#dump} did not write
      def self.load(bytes)
        return if bytes.nil? || bytes.bytesize < HEADER_BYTESIZE

        magic, etag_size, time, count, ids_size, body_size = bytes.unpack(HEADER)
        start = HEADER_BYTESIZE + etag_size + (count * 4) + ids_size
        return if magic != MAGIC || start + body_size != bytes.bytesize

        new(body: bytes.byteslice(start, body_size), holes: load_holes(bytes, HEADER_BYTESIZE + etag_size, count, ids_size),
            etag: (bytes.byteslice(HEADER_BYTESIZE, etag_size).force_encoding(Encoding::UTF_8) if etag_size.positive?),
            last_modified: (Time.at(0, time, :microsecond).utc if time != NO_TIME))
      rescue ArgumentError # offsets that do not fit: not ours
        nil
      end

      def self.load_holes(bytes, start, count, ids_size)
        return [] if count.zero?

        ids = bytes.byteslice(start + (count * 4), ids_size).split(SEPARATOR)
        raise ArgumentError, "ids" if ids.size != count

        bytes.byteslice(start, count * 4).unpack("L>*").zip(ids)
      end
      private_class_method :load_holes

      # @return [String] binary
      def dump
        etag = @etag.to_s.b
        ids = @ids.join(SEPARATOR)
        header = [MAGIC, etag.bytesize, time, @offsets.size, ids.bytesize, @body.bytesize].pack(HEADER)
        header << etag << @offsets.pack("L>*") << ids << @body
      end

      private

      def time
        @last_modified ? (@last_modified.to_i * 1_000_000) + @last_modified.usec : NO_TIME
      end

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
