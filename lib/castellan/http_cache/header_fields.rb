# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Normalizes, combines and filters response header fields.
    #
    # Fields are a Hash of lower-case names and Strings or Arrays of Strings.
    module HeaderFields
      # Never stored: fields of one connection (RFC 9110 §7.6.1) or one proxy (RFC 9111 §3.1), and the
      # announcement of trailers, which are not stored. Age is stored as a number.
      UNSTORED = %w[connection keep-alive proxy-connection proxy-authenticate proxy-authentication-info proxy-authorization te
                    trailer transfer-encoding upgrade age].freeze
      # Digests of the whole content, which are wrong for a part of it (RFC 9530 §2).
      DIGESTS = %w[content-digest content-md5].freeze
      # Not updated by a 304 or a HEAD response (RFC 9111 §3.2): in these, Content-Digest is that of no content
      # (RFC 9530, appendix B.2).
      KEPT = %w[content-length content-range content-digest].freeze
      # Not sent with a 304 (RFC 9110 §15.4.5).
      OF_CONTENT = (%w[content-length content-range content-encoding content-type content-language] + DIGESTS).freeze
      SPACED = /\A[ \t]|[ \t]\z/
      private_constant :UNSTORED, :KEPT, :SPACED

      module_function

      # @param headers [#each] of a Rack response
      # @return [Hash{String => String, Array<String>}] a new Hash with lower-case names
      def normalize(headers)
        fields = {}
        headers.each do |name, value|
          next if value.nil?

          name = name.to_s.downcase
          value = value.to_s if value.is_a?(Numeric) || value.is_a?(Symbol) # servers tolerate these
          value = value.b.split("\n") if value.is_a?(String) && value.include?("\n")
          value = value.is_a?(Array) ? value.map { |line| stripped(line) } : stripped(value)
          fields[name] = fields.key?(name) ? [*fields[name], *value] : value
        end
        fields
      end

      # Whitespace around a value is no part of it (RFC 9110 §5.5).
      def stripped(value)
        value.is_a?(String) && value.match?(SPACED) ? value.strip : value
      rescue ArgumentError # invalid bytes
        value.b.strip
      end
      private_class_method :stripped

      # @return [String, nil] all lines of a list field
      def combined(value)
        value.is_a?(Array) ? value.map { |line| bytes(line) }.join(", ") : bytes(value)
      end

      # @return [String, nil] the first line of a field with one value
      def first(value)
        bytes(value.is_a?(Array) ? value.first : value)
      end

      # Makes a field safe for regular expressions: an invalid character would raise.
      # @return [String, nil] ASCII or binary
      def bytes(value)
        value.nil? || value.ascii_only? ? value : value.b
      end

      # @return [Array<String>] names of the fields that are only for this connection (RFC 9110 §7.6.1)
      def connection(fields)
        combined(fields["connection"]).to_s.downcase.split(/[\s,]+/)
      end

      # @param without [Array<String>] further names to leave out
      # @return [Hash] the fields that a cache stores
      def storable(fields, without = [])
        named = connection(fields)
        fields.reject { |name, _| UNSTORED.include?(name) || named.include?(name) || without.include?(name) || name.start_with?("rack.") }
      end

      # Keeps the names in the stored Vary, on which the content still depends: Rack::Deflater adds Accept-Encoding only
      # where it compresses, so not to a 304.
      # @param stored [Hash] fields of a stored response
      # @param fields [Hash] of a 304
      # @return [Hash] the updated fields (RFC 9111 §3.2)
      def updated(stored, fields)
        all = stored.merge(storable(fields, KEPT))
        left_out = list(stored["vary"]).reject { |name| list(all["vary"]).any? { |other| other.casecmp?(name) } }
        left_out.empty? ? all : all.merge("vary" => [*list(all["vary"]), *left_out].join(", "))
      end

      # @return [Array<String>] the names in a Vary
      def list(value) = combined(value).to_s.split(/[\s,]+/).reject(&:empty?)
      private_class_method :list
    end
  end
end
