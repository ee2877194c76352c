# frozen_string_literal: true

require "zlib"

module Castellan
  module Cache
    # Holds cached bytes, the time they were made, and how long that took. Frozen.
    #
    #   entry = Entry.new(key, bytes, made_ms: Clock.wall_ms, cost_ms: 7)
    #   Entry.load(key, entry.dump)     # => the same; the bytes are not copied
    #   Entry.load(key, "anything else") # => nil, a miss; so are the bytes of another key
    #
    # The binary form includes a checksum of the key and the bytes, because a connection that was interrupted in
    # the middle of a response can return the value of another key, or part of it.
    class Entry
      MAGIC = "CL\x03\x00".b.freeze
      HEADER = "a4L>Q>Q>L>" # the magic, the checksum, how many bytes, milliseconds since 1970, milliseconds
      HEADER_BYTESIZE = 28
      MOST_COSTS = 37 # -log(2**-53): no random number above 0 makes XFetch compute earlier
      private_constant :MAGIC, :HEADER, :HEADER_BYTESIZE, :MOST_COSTS

      # @return [String] the key of the bytes in the store
      # @return [String]
      # @return [Integer] milliseconds since 1970, because processes share this clock
      # @return [Integer] milliseconds that the computation took
      attr_reader :key, :bytes, :made_ms, :cost_ms

      # @param stored [Boolean] false if the store did not take it
      def initialize(key, bytes, made_ms:, cost_ms:, stored: true)
        @key = key
        @bytes = bytes
        @made_ms = made_ms
        @cost_ms = cost_ms
        @stored = stored
        freeze
      end

      # @return [Boolean]
      def stored? = @stored

      # @return [Entry] the same, which the store did not take
      def unstored = Entry.new(@key, @bytes, made_ms: @made_ms, cost_ms: @cost_ms, stored: false)

      # @param kept [String, nil] from a store
      # @return [Entry, nil]
      def self.load(key, kept)
        return unless kept.is_a?(String) && kept.bytesize >= HEADER_BYTESIZE && kept.start_with?(MAGIC)

        _, checksum, bytesize, made_ms, cost_ms = kept.unpack(HEADER)
        return unless kept.bytesize == HEADER_BYTESIZE + bytesize

        bytes = kept.byteslice(HEADER_BYTESIZE, bytesize)
        new(key, bytes, made_ms: made_ms, cost_ms: cost_ms) if checksum == Zlib.crc32(bytes, Zlib.crc32(key))
      end

      # @return [String] binary and frozen, without spare capacity, because a MemoryStore stores this object
      def dump
        kept = String.new(capacity: HEADER_BYTESIZE + @bytes.bytesize, encoding: Encoding::BINARY)
        checksum = Zlib.crc32(@bytes, Zlib.crc32(@key))
        (kept << [MAGIC, checksum, @bytes.bytesize, @made_ms, [@cost_ms, 0xffff_ffff].min].pack(HEADER) << @bytes.b).freeze
      end

      # @param expires_in [Numeric] seconds
      # @return [Numeric] milliseconds since 1970, until which {DocumentLayer} does not compute the bytes early
      def surely_fresh_until_ms(expires_in) = @made_ms + (expires_in * 1000) - (@cost_ms * MOST_COSTS)

      # @return [Integer] milliseconds; 0 if another machine's clock is ahead
      def age_ms(now_ms = Clock.wall_ms) = [now_ms - @made_ms, 0].max
    end
  end
end
