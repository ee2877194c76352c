# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Compares the request fields that Vary lists (RFC 9111 §4.1).
    #
    #   Vary.names("Accept-Encoding, Accept")          # => ["accept", "accept-encoding"]
    #   Vary.names("*")                                # => nil: matches no request
    #   Vary.signature(["accept-encoding"], env)       # => ["br,gzip"]
    #
    # Normalizes only differences without a meaning: white space around the commas of a list of tokens, that
    # before weights and case in some Accept fields, and order in Accept-Encoding. Compares all other values
    # unchanged.
    module Vary
      MOST_NAMES = 32
      LONGEST = 4_096 # bytes of a value that is normalized
      EXACT = %w[cookie authorization user-agent hx-prompt].freeze # free text
      TOKEN = /\A[!#$%&'*+\-.^_`|~0-9a-z]+\z/
      TOKENS = %r{\A[!#$%&*+\-.^_`|~0-9A-Za-z/;=, \t]*\z}
      CASELESS = %w[accept-encoding accept-language accept-charset].freeze
      WEIGHTED = ["accept", *CASELESS].freeze
      NONE = [].freeze
      USUAL_BYTESIZE = 100
      ENCODINGS = BoundedCache.new(limit: 200) # normalized values of Accept-Encoding, which repeat
      KEYS = BoundedCache.new(limit: 200) # in Rack's environment, of the names that the application sends
      private_constant :TOKEN, :TOKENS, :USUAL_BYTESIZE, :ENCODINGS, :KEYS, :MOST_NAMES, :LONGEST, :EXACT, :CASELESS, :WEIGHTED,
                       :NONE

      module_function

      # @param value [String, Array<String>, nil]
      # @param always [Array<String>] further field names
      # @return [Array<String>, nil] sorted; nil if no request can match
      def names(value, always = NONE)
        return always if value.nil?

        names = (HeaderFields.combined(value).downcase.split(/[\s,]+/).reject(&:empty?) | always).sort
        names unless names.include?("*") || names.size > MOST_NAMES || !names.all?(TOKEN)
      end

      # @param env [Hash] Rack environment
      # @return [Array<String, nil>] equal for two requests that match; nil for an absent field
      def signature(names, env)
        names.map do |name|
          value = env[key(name)]
          value && normalize(name, HeaderFields.bytes(value))
        end
      end

      def key(name)
        KEYS.fetch(name) { environment_key(name) }
      end

      def environment_key(name)
        name = name.upcase.tr("-", "_")
        name == "CONTENT_TYPE" || name == "CONTENT_LENGTH" ? name : "HTTP_#{name}" # rubocop:disable Style/MultipleComparison
      end

      # Splits on commas in linear time, and never parses weights.
      def normalize(name, value)
        return encodings(value) if name == "accept-encoding" && value.bytesize <= LONGEST
        return value.strip if EXACT.include?(name) || value.bytesize > LONGEST || !value.match?(TOKENS)

        value = value.downcase if CASELESS.include?(name)
        value = unspaced(value) if WEIGHTED.include?(name)
        value.split(",", -1).map(&:strip).join(",")
      end

      def encodings(value)
        return sorted(value) if value.bytesize > USUAL_BYTESIZE

        ENCODINGS.fetch(value) { sorted(value) }
      end

      def sorted(value)
        unspaced(value.downcase).split(",").map(&:strip).reject(&:empty?).sort.join(",")
      end

      # In linear time, unlike a regular expression.
      def unspaced(value) = value.split(";", -1).map(&:strip).join(";")
      private_class_method :key, :environment_key, :normalize, :encodings, :sorted, :unspaced
    end
  end
end
