# frozen_string_literal: true

module Castellan
  # Converts bytes from clients (header fields, paths, query parameters) to text.
  #
  #   Castellan::ClientText.utf8("caf\xC3\xA9".b)      # => "café"
  #   Castellan::ClientText.utf8("text/h\xE9")         # => nil, because no database and no JSON document accepts it
  #   Castellan::ClientText.shown("text/h\xE9")        # => "text/h?", for an error message
  module ClientText
    UTF8 = [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].freeze
    private_constant :UTF8

    module_function

    # @param value [String] in any encoding; binary and ASCII strings are read as UTF-8
    # @return [String, nil] valid UTF-8 without NUL, else nil
    def utf8(value)
      text = UTF8.include?(value.encoding) ? value : value.encode(Encoding::UTF_8)
      text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
      text if text.valid_encoding? && !text.include?("\0")
    rescue ::EncodingError
      nil
    end

    # @param most [Integer] the maximum length in characters
    # @return [String] valid UTF-8; invalid bytes become "?"
    def shown(value, most = 60)
      (utf8(value) || value.b.force_encoding(Encoding::UTF_8).scrub("?"))[0, most]
    end
  end
end
