# frozen_string_literal: true

module Castellan
  module Profile
    # Signed permissions that end: "1767225600.9f86d0…", the second at which it ends and an HMAC (SHA-256) of that.
    #
    #   token = Token.new(secret)
    #   text = token.sign(3_600)     # good for an hour
    #   token.valid?(text)           # => true
    #
    # Whoever has one may see profiles until then; there is no taking back but another secret. Compared in constant time. Frozen.
    class Token
      SHORTEST_SECRET = 32
      FORMAT = /\A(\d{1,12})\.(\h{64})\z/
      private_constant :FORMAT

      # @param secret [String] at least SHORTEST_SECRET bytes, known to every process that should accept the same links
      def initialize(secret)
        @secret = secret.to_s.dup.freeze
        if @secret.bytesize < SHORTEST_SECRET
          raise ConfigurationError, "secret: must be at least #{SHORTEST_SECRET} bytes, got #{@secret.bytesize}; " \
                                    "write for example the output of `ruby -rsecurerandom -e 'puts SecureRandom.hex(32)'`"
        end

        freeze
      end

      # @param seconds [Integer] from now
      # @return [String]
      def sign(seconds)
        ends = Clock.now.to_i + Integer(seconds)
        "#{ends}.#{digest(ends.to_s)}"
      end

      # @param text [String, nil] from outside
      # @return [Boolean]
      def valid?(text)
        return false unless text.is_a?(String) && text.ascii_only? && (match = FORMAT.match(text))

        same?(match[2], digest(match[1])) && match[1].to_i > Clock.now.to_i
      end

      def inspect = "#<#{self.class}>"

      private

      # OpenSSL is loaded with the first token that somebody shows or signs.
      def digest(text)
        require "openssl"
        OpenSSL::HMAC.hexdigest("SHA256", @secret, "castellan profile until #{text}")
      end

      def same?(one, other) = OpenSSL.fixed_length_secure_compare(one, other)
    end
  end
end
