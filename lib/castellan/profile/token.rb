# frozen_string_literal: true

module Castellan
  module Profile
    # Signs and verifies tokens that expire: "1767225600.9f86d0…" is a Unix time and an HMAC-SHA256.
    # Frozen.
    #
    #   token = Token.new(secret)
    #   text = token.sign(3_600)     # valid for an hour
    #   token.valid?(text)           # => true
    #
    # Compares in constant time. To revoke a token, change the secret.
    class Token
      SHORTEST_SECRET = 32
      FORMAT = /\A(\d{1,12})\.(\h{64})\z/
      private_constant :FORMAT

      # @param secret [String] at least SHORTEST_SECRET bytes, the same in all processes
      # @raise [ConfigurationError] if it is shorter
      def initialize(secret)
        @secret = secret.to_s.dup.freeze
        if @secret.bytesize < SHORTEST_SECRET
          raise ConfigurationError, "secret: must be at least #{SHORTEST_SECRET} bytes, got #{@secret.bytesize}; " \
                                    "write for example the output of `ruby -rsecurerandom -e 'puts SecureRandom.hex(32)'`"
        end

        freeze
      end

      # @param seconds [Integer] until it expires
      # @return [String] the token
      def sign(seconds)
        ends = Clock.now.to_i + Integer(seconds)
        "#{ends}.#{digest(ends.to_s)}"
      end

      # @param text [String, nil] may be client input
      # @return [Boolean]
      def valid?(text)
        return false unless text.is_a?(String) && text.ascii_only? && (match = FORMAT.match(text))

        same?(match[2], digest(match[1])) && match[1].to_i > Clock.now.to_i
      end

      def inspect = "#<#{self.class}>"

      private

      # OpenSSL is slow to load, so only the first use loads it.
      def digest(text)
        require "openssl"
        OpenSSL::HMAC.hexdigest("SHA256", @secret, "castellan profile until #{text}")
      end

      def same?(one, other) = OpenSSL.fixed_length_secure_compare(one, other)
    end
  end
end
