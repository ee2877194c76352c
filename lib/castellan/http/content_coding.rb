# frozen_string_literal: true

module Castellan
  module HTTP
    # Chooses the content coding of a response (RFC 9110 §12.5.3).
    #
    #   ContentCoding.choose("gzip, br;q=0.5", %w[br gzip])      # => "gzip"
    #   ContentCoding.choose("identity, gzip;q=0.1", %w[gzip])   # => nil: send it as it is
    #
    # Ignores a field of more than 500 bytes or more than 20 codings; the response is then sent uncompressed.
    module ContentCoding
      LONGEST = 500
      MOST = 20
      WEIGHT = /\A\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*\z/i
      NONE = {}.freeze
      IDENTITY = "identity"
      # Most clients send one of a few values. Longer ones are parsed for each request.
      SHORT = 100
      CHOSEN = BoundedCache.new
      private_constant :LONGEST, :MOST, :WEIGHT, :NONE, :IDENTITY, :SHORT, :CHOSEN

      module_function

      # @param accept_encoding [String, nil] the header field
      # @param offered [Array<String>] codings in lower case, preferred first
      # @return [String, nil] one of the offered codings; nil for none
      def choose(accept_encoding, offered)
        return if accept_encoding.nil? || accept_encoding.bytesize > LONGEST
        return chosen(accept_encoding, offered) if accept_encoding.bytesize > SHORT

        found = CHOSEN.fetch([accept_encoding, offered]) { chosen(accept_encoding, offered) || IDENTITY }
        found unless found.equal?(IDENTITY)
      end

      def chosen(accept_encoding, offered)
        weights = weights(accept_encoding)
        best = offered.max_by.with_index { |coding, index| [weight(weights, coding), -index] }
        return unless best && (found = weight(weights, best)).positive?

        best if found >= weights.fetch("identity", 0)
      end

      # @return [Hash{String => Float}]
      def weights(text)
        list = text.b.downcase.split(",", MOST + 1)
        return NONE if list.size > MOST

        list.each_with_object({}) do |one, found|
          name, weight, further = one.split(";", 3)
          name = name.to_s.strip.delete_prefix("x-")
          weight = weight.nil? ? 1.0 : weight[WEIGHT, 1]&.to_f
          found[name] = weight if weight && further.nil? && !name.empty?
        end
      end

      def weight(weights, coding) = weights.fetch(coding) { weights.fetch("*", 0) }
      private_class_method :chosen, :weights, :weight
    end
  end
end
