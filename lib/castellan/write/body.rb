# frozen_string_literal: true

require "json"

module Castellan
  module Write
    # Reads the JSON document of a request's body.
    #
    #   Body.read(env)   # => { "data" => { "type" => "posts", … } }
    module Body
      # The maximum size of a body in bytes; the response to a longer one is 413.
      LIMIT = 1_048_576
      DEPTH = 32
      private_constant :DEPTH

      # Strings, and the comments that json before 3.0 accepts.
      TEXT = %r{"[^"\\]*+(?>\\.[^"\\]*+)*+"|/\*.*?\*/|//[^\n]*}m
      # All text before the first escaped half of a surrogate pair. Other parsers, such as json before 3.0, make wrong text of it.
      HALF = /\A(?>[^\\]+|\\[^u]|\\u(?!d[89a-f])|\\ud[89ab]\h\h\\ud[c-f]\h\h)*+\\u/mi
      private_constant :TEXT, :HALF

      module_function

      # @param env [Hash] Rack's environment
      # @param limit [Integer] bytes
      # @return [Hash] the document
      # @raise [BadRequest] 413 if the body is longer than `limit`, 415 if it is compressed, 400 if it is not a JSON object
      def read(env, limit: LIMIT)
        refuse_coding(env["HTTP_CONTENT_ENCODING"])
        bytes = bytes_of(env, limit)
        text = ClientText.utf8(bytes) or refuse("the body is not valid UTF-8 text")
        refuse("the body is not valid JSON: one half of a surrogate pair is no character") if HALF.match?(text)
        document = JSON.parse(text, max_nesting: DEPTH, allow_duplicate_key: false, allow_comments: false)
        # Parsers disagree about the value (RFC 8259 §4), and json before 2.13 takes the last one.
        refuse("a member occurs twice in one object") if members(document) < text.gsub(TEXT, "").count(":")
        document.is_a?(Hash) ? document : refuse("the body must be a JSON object, got #{Write.kind_of(document)}")
      rescue JSON::ParserError => error # includes NestingError
        refuse("the body is not valid JSON: #{ClientText.shown(error.message.sub(/\A\d+: /, ""), 200)}") # json's own line
      end

      # Reads one byte more than the limit, because Content-Length may be absent or wrong.
      def bytes_of(env, limit)
        bytes = env["rack.input"]&.read(limit + 1) || ""
        return bytes if bytes.bytesize <= limit

        raise BadRequest.new("the body is longer than #{limit} bytes", status: 413, title: "Content too large")
      end

      def refuse_coding(coding)
        return if coding.nil? || coding.empty? || coding.casecmp?("identity")

        raise BadRequest.new("Content-Encoding: #{ClientText.shown(coding)} is not supported; send the document uncompressed",
                             status: 415, title: "Unsupported media type", header: "Content-Encoding")
      end

      # @return [Integer] of all objects
      def members(value)
        case value
        when Hash then value.size + value.each_value.sum { |one| members(one) }
        when Array then value.sum { |one| members(one) }
        else 0
        end
      end

      def refuse(detail)
        raise BadRequest.new(detail, pointer: "", title: "Invalid document")
      end
      private_class_method :bytes_of, :refuse_coding, :members, :refuse
    end

    # @return [String] the JSON type of a parsed value, for messages
    def self.kind_of(value)
      case value
      when Hash then "an object"
      when Array then "an array"
      when String then "a string"
      when Numeric then "a number"
      when nil then "null"
      else value.to_s
      end
    end
  end
end
