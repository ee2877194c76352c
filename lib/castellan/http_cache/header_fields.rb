# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Functions of response header fields: Hashes of lower-case names and Strings or Arrays of Strings.
    module HeaderFields
      # Never stored: they belong to one connection (RFC 9110 §7.6.1) or to one proxy (RFC 9111 §3.1), or
      # announce trailers, which are not stored. Age is stored as a number.
      UNSTORED = %w[connection keep-alive proxy-connection proxy-authenticate proxy-authentication-info proxy-authorization te
                    trailer transfer-encoding upgrade age].freeze
      # Digests of the whole content, which are wrong for a part of it (RFC 9530 §2).
      DIGESTS = %w[content-digest content-md5].freeze
      # Left alone by a 304, because the stored bytes depend on them (RFC 9111 §3.2).
      KEPT = (%w[content-length content-encoding content-range] + DIGESTS).freeze
      # Not sent with a 304 (RFC 9110 §15.4.5).
      OF_CONTENT = (KEPT + %w[content-type content-language]).freeze
      private_constant :UNSTORED, :KEPT

      module_function

      # @param headers [#each] of a Rack response
      # @return [Hash{String => String, Array<String>}] a new Hash with lower-case names
      def normalize(headers)
        fields = {}
        headers.each do |name, value|
          next if value.nil?

          name = name.to_s.downcase
          value = value.to_s if value.is_a?(Numeric) || value.is_a?(Symbol) # which servers tolerate
          value = value.b.split("\n") if value.is_a?(String) && value.include?("\n")
          fields[name] = fields.key?(name) ? [*fields[name], *value] : value
        end
        fields
      end

      # @return [String, nil] all lines of a list field
      def combined(value)
        value.is_a?(Array) ? value.map { |line| bytes(line) }.join(", ") : bytes(value)
      end

      # @return [String, nil] the first line of a field with one value
      def first(value)
        bytes(value.is_a?(Array) ? value.first : value)
      end

      # Whatever its encoding says, a field may have any bytes, and an invalid character would raise.
      # @return [String, nil] ASCII or binary
      def bytes(value)
        value.nil? || value.ascii_only? ? value : value.b
      end

      # @param without [Array<String>] further names
      # @return [Hash] what a cache stores
      def storable(fields, without = [])
        named = combined(fields["connection"]).to_s.downcase.split(/[\s,]+/)
        fields.reject { |name, _| UNSTORED.include?(name) || named.include?(name) || without.include?(name) || name.start_with?("rack.") }
      end

      # @param stored [Hash] fields of a stored response
      # @param fields [Hash] of a 304
      # @param without [Array<String>] further names
      # @return [Hash] the updated fields (RFC 9111 §3.2)
      def updated(stored, fields, without = [])
        stored.merge(storable(fields, without + KEPT))
      end
    end
  end
end
