# frozen_string_literal: true

require "zlib"

module Castellan
  class HTTPCache
    # Holds a stored response and the data that decides about its reuse (RFC 9111 §3, §4.2). Frozen.
    #
    #   stored.age(now)        # => 12.3 seconds (§4.2.3)
    #   stored.remaining(now)  # => 47.7; negative when it is stale
    #   StoredResponse.load(stored.dump(key), key)
    #
    # The binary form is not Marshal, because a shared store is untrusted input. {.load} returns nil for
    # anything that {#dump} did not write for this key: an interrupted connection to a store can return the
    # value of another one.
    class StoredResponse
      MAGIC = "CHR4"
      HEADER = "a4L>Q>L>" # magic, sizes of the text and of the content, checksum of the key and both
      HEADER_BYTESIZE = 20
      FLAGS = { shareable: 1, strict: 2, no_cache: 4, immutable: 8, anonymous: 16, head: 32 }.freeze
      private_constant :HEADER, :HEADER_BYTESIZE, :FLAGS

      # @return [Integer]
      attr_reader :status
      # @return [Hash{String => String, Array<String>}]
      attr_reader :fields
      # @return [Hash{String => String, Array<String>}] without the fields of the content (RFC 9110 §15.4.5)
      attr_reader :fields_of_304
      # @return [String, nil]
      attr_reader :etag
      # @return [String] binary
      attr_reader :content
      # @return [Integer] where the content begins in the whole content: 0 unless it is {#incomplete?}
      attr_reader :offset
      # @return [Integer] bytes of the whole content
      attr_reader :size
      # @return [Float] when it was received or validated, in seconds since 1970
      attr_reader :received_at
      # @return [Float] corrected_initial_age
      attr_reader :initial_age
      # @return [Numeric] freshness_lifetime, seconds
      attr_reader :lifetime
      # @return [Integer] seconds after the lifetime: stale-while-revalidate, stale-if-error
      attr_reader :while_revalidate, :if_error
      # @return [Array<(String, String)>] keys of tags in the store, and their values when it was stored
      attr_reader :tags

      # @param flags [Array<Symbol>] :shareable (with Authorization), :strict (never served stale), :no_cache,
      #   :immutable, :anonymous (not for requests that identify their sender), :head (the response to a HEAD
      #   request)
      def initialize(status:, fields:, content:, received_at:, initial_age:, lifetime:, while_revalidate: 0, if_error: 0, flags: [],
                     tags: [])
        @status = status
        # Copies, because a middleware may change a field of the response from which it was made.
        @fields = fields.transform_values { |value| value.is_a?(Array) ? value.map { |line| -line.to_s }.freeze : -value.to_s }.freeze
        @fields_of_304 = @fields.except(*HeaderFields::OF_CONTENT).freeze
        @etag = HeaderFields.first(@fields["etag"])
        @content = content
        @offset, _, @size = (status == 206 && Parts.position(fields)) || [0, nil, content.bytesize]
        @received_at = received_at
        @initial_age = initial_age
        @lifetime = lifetime
        @while_revalidate = while_revalidate
        @if_error = if_error
        @flags = flags.sum { |flag| FLAGS.fetch(flag) }
        @tags = tags.freeze
        freeze
      end

      def shareable? = @flags.anybits?(FLAGS[:shareable])
      def strict? = @flags.anybits?(FLAGS[:strict])
      def no_cache? = @flags.anybits?(FLAGS[:no_cache])
      def immutable? = @flags.anybits?(FLAGS[:immutable])
      def anonymous? = @flags.anybits?(FLAGS[:anonymous])

      def head? = @flags.anybits?(FLAGS[:head])

      # @return [Boolean] whether it answers only some requests: a part those for ranges of it, a response to
      #   HEAD those for HEAD
      def incomplete? = status == 206 || head?

      # @param now [Float] seconds since 1970
      # @return [Float] current_age
      def age(now)
        resident = now - @received_at
        resident.positive? ? @initial_age + resident : @initial_age
      end

      # @return [Float] seconds until it is stale
      def remaining(now)
        @lifetime - age(now)
      end

      # @return [String, nil]
      def last_modified
        HeaderFields.first(@fields["last-modified"])
      end

      # @return [Numeric] the Date field, in seconds since 1970, or {#received_at}. The newest of several
      #   matching responses is used (RFC 9111 §4)
      def date
        HTTPDate.parse(HeaderFields.first(@fields["date"])) || @received_at
      end

      # @return [Boolean] whether the origin server can validate it
      def validator?
        !etag.nil? || !last_modified.nil?
      end

      # @param key [String] in the store
      # @param generation [String, nil] see {generation}
      # @return [String, nil] binary; nil if a field contains a line break
      def dump(key, generation = nil)
        lines = fields.flat_map { |name, value| Array(value).map { |line| "#{name}:#{line}" } }
        lines = ["#{numbers} #{generation || "-"}", *@tags.flatten, *lines]
        return if lines.any? { |line| line.include?("\n") }

        text = lines.map(&:b).join("\n")
        checksum = self.class.checksum(key, text, @content)
        [MAGIC, text.bytesize, @content.bytesize, checksum].pack(HEADER) << text << @content.b
      end

      # @return [Integer] CRC-32
      def self.checksum(*parts) = parts.inject(0) { |sum, part| Zlib.crc32(part, sum) }

      # @param bytes [String] of {dump}
      # @return [String, nil] the generation passed to {#dump}; see {Storage#generation}
      def self.generation(bytes)
        bytes[/\A.{#{HEADER_BYTESIZE}}[^\n]* (\h{16})(?:\n|\z)/mno, 1]
      end

      # @param bytes [String, nil]
      # @param key [String] in the store
      # @return [StoredResponse, nil]
      def self.load(bytes, key)
        return unless bytes.is_a?(String) && bytes.bytesize >= HEADER_BYTESIZE

        magic, text_size, size, checksum = bytes.unpack(HEADER)
        start = HEADER_BYTESIZE + text_size
        return if magic != MAGIC || start + size != bytes.bytesize

        text = bytes.byteslice(HEADER_BYTESIZE, text_size)
        content = bytes.byteslice(start, size).freeze
        read(text.split("\n", -1), content) if checksum == checksum(key, text, content)
      end

      def self.read(lines, content)
        *numbers, _generation = lines.shift.to_s.split
        return unless numbers.size == 8 && numbers.all?(/\A-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\z/)

        status, received_at, initial_age, lifetime, while_revalidate, if_error, flags, tags = numbers
        tags = lines.shift(tags.to_i * 2).each_slice(2).to_a
        fields = fields(lines) or return
        new(status: status.to_i, fields: fields, content: content, received_at: received_at.to_f, initial_age: initial_age.to_f,
            lifetime: lifetime.to_f, while_revalidate: while_revalidate.to_i, if_error: if_error.to_i,
            flags: FLAGS.select { |_, bit| flags.to_i.anybits?(bit) }.keys, tags: tags)
      end

      def self.fields(lines)
        return unless lines.all? { |line| line.include?(":") }

        lines.each_with_object({}) do |line, fields|
          name, value = line.split(":", 2).map { |part| part.force_encoding(Encoding::UTF_8) }
          value = value.b unless value.valid_encoding? # outer middlewares match it with regular expressions
          fields[name] = fields.key?(name) ? [*fields[name], value] : value
        end
      end
      private_class_method :read, :fields

      private

      def numbers
        [@status, @received_at, @initial_age, @lifetime, @while_revalidate, @if_error, @flags, @tags.size].join(" ")
      end
    end
  end
end
