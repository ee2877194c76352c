# frozen_string_literal: true

require "digest/sha2"

module Castellan
  module Cache
    # Builds a short key from everything the bytes depend on.
    #
    #   Key.for(["users", "SELECT …", "v17", nil]) # => "castellan:1:Vb0…", 44 characters, safe in every store
    #
    # Unlike a join, it distinguishes `["a", "b"]`, `["ab"]` and `["a", nil, "b"]`. The key is 192 bits of
    # SHA-256, because clients choose some of the parts and may search for collisions.
    module Key
      # @return [Integer] the version of keys and envelopes; versions do not read each other's entries
      FORMAT = 1
      PREFIX = "castellan:#{FORMAT}:".freeze
      LONG = 4096 # bytes; for more, OpenSSL's SHA-256 is faster, if it is loaded
      private_constant :LONG

      module_function

      # @param parts [Array<String, Symbol, Integer, true, false, nil, Array>] in a fixed order
      # @return [String] frozen ASCII
      # @raise [ArgumentError] for any other class, such as a Float or a record
      def for(parts)
        buffer = String.new(capacity: 256, encoding: Encoding::BINARY)
        append(buffer, parts)
        (PREFIX + [digest(buffer)[0, 24]].pack("m0").tr("+/", "-_")).freeze
      end

      # @param key [String] see {.for}
      # @param coding [String, nil] the content coding of a response
      # @return [String] an entity tag
      def etag(key, coding)
        coding ? %("#{key.delete_prefix(PREFIX)}-#{coding}") : %("#{key.delete_prefix(PREFIX)}")
      end

      def append(buffer, part)
        case part
        when String then buffer << "s" << part.bytesize.to_s << ":" << (part.ascii_only? ? part : part.b)
        when Array
          buffer << "a" << part.size.to_s << ":"
          part.each { |inner| append(buffer, inner) }
        when Symbol then append(buffer, part.name)
        when Integer then buffer << "i" << part.to_s << ";"
        when nil then buffer << "n"
        when true, false then buffer << (part ? "t" : "f")
        else raise ArgumentError, "a key is made of strings, symbols, integers, booleans, nil and arrays of them, got #{part.class}"
        end
      end

      def digest(bytes)
        return OpenSSL::Digest.digest("SHA256", bytes) if bytes.bytesize >= LONG && defined?(OpenSSL::Digest)

        Digest::SHA256.digest(bytes)
      end
      private_class_method :append, :digest
    end
  end
end
