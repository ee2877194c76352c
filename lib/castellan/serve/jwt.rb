# frozen_string_literal: true

require "digest/sha2"
require_relative "jwks"

module Castellan
  module Serve
    # Authenticates clients by the JSON Web Token in Authorization (RFC 7519, RFC 6750).
    # Needs the jwt gem.
    #
    #   authenticate(jwt: { jwks_url: "https://id.example.org/jwks.json", algorithms: %w[RS256], issuer: "https://id.example.org",
    #                       audience: "api" }) { |claims| User.find_by(id: claims["sub"]) }
    #
    # Accepts only the configured algorithms, which must be of one family, so that a public key is never used
    # as a shared secret. Frozen. Caches verified tokens for at most {REMEMBERED} seconds.
    class Jwt
      # The maximum size of a token in bytes. Longer tokens are rejected before they are decoded.
      LONGEST = 8_192
      # The number of seconds for which a verified token is not verified again. A revoked key is accepted for
      # so long.
      REMEMBERED = 60
      OPTIONS = %i[key jwks_url algorithms issuer audience leeway].freeze
      BEARER = /\ABearer +([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)\z/i
      SCHEME = /\ABearer(?: |\z)/i
      # The minimum size of a key in bytes: that of the digest (RFC 7518, section 3.2).
      SECRETS = { "HS256" => 32, "HS384" => 48, "HS512" => 64 }.freeze
      PUBLIC = %w[RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512].freeze
      MOST_LEEWAY = 300
      private_constant :OPTIONS, :BEARER, :SCHEME, :SECRETS, :PUBLIC, :MOST_LEEWAY

      # @param challenge [String] the WWW-Authenticate field of a 401
      # @param options [Hash] `key:` (a secret, a public key, a PEM text, or an Array of them) or `jwks_url:`;
      #   `algorithms:`; `issuer:` and `audience:` (a String or an Array), which the token must then contain;
      #   `leeway:`, the seconds by which clocks may differ
      # @yieldparam claims [Hash] the claims of a valid token; frozen
      # @yieldreturn [Object, nil] the viewer; nil gives a 401. Default: the claims
      # @raise [ConfigurationError]
      def initialize(options, challenge:, &viewer)
        load_gem
        check(options)
        @challenge = challenge
        @algorithms = options[:algorithms].dup.freeze
        @keys = options[:key] ? keys(options[:key]) : Jwks.new(options[:jwks_url])
        @leeway = options.fetch(:leeway, 0)
        @options = verification(options).freeze
        @viewer = viewer || ->(claims) { claims }
        @verified = BoundedCache.new(limit: 1_000)
        freeze
      end

      # @param env [Hash] Rack's environment
      # @return [Object, nil] the viewer; nil without a token
      # @raise [BadRequest] 401 if the token is invalid, 503 if no keys can be fetched
      def call(env)
        field = env["HTTP_AUTHORIZATION"] or return
        now = Clock.now.to_i
        key = Digest::SHA256.digest(field) << (now / REMEMBERED).to_s if field.bytesize <= LONGEST
        claims = (key && @verified[key]) || verify(field, key) or return
        refuse("the token has expired") if claims["exp"].to_i + @leeway <= now

        @viewer.call(claims) || refuse("the token is not valid")
      end

      # Without the keys.
      # @return [String]
      def inspect = "#<#{self.class} #{@algorithms.join(" ")}>"

      private

      def load_gem
        require "jwt"
      rescue LoadError
        raise ConfigurationError, %(authenticate jwt: needs the jwt gem; add gem "jwt" to the Gemfile)
      end

      # @return [Hash, nil] the claims; nil for another authentication scheme
      def verify(field, key)
        field = field.b
        return unless SCHEME.match?(field)

        token = field[BEARER, 1] if key
        token ? @verified.fetch(key) { decode(token) } : refuse("the token is not valid")
      end

      # Rescues every error, because claims of unexpected types make the gem raise other errors than its own.
      def decode(token)
        claims, = ::JWT.decode(token, nil, true, @options) { |header| keys_of(header) }
        frozen(claims)
      rescue BadRequest
        raise
      rescue ::JWT::ExpiredSignature
        refuse("the token has expired")
      rescue StandardError
        refuse("the token is not valid")
      end

      # Critical header parameters must be understood (RFC 7515, section 4.1.11), and none is.
      def keys_of(header)
        return if header.key?("crit")

        @keys.is_a?(Jwks) ? @keys.find(header["kid"], header["alg"]) : @keys
      end

      def frozen(value)
        case value
        when Hash then value.each_value { |one| frozen(one) }
        when Array then value.each { |one| frozen(one) }
        end
        value.freeze
      end

      # RFC 6750, section 3.
      def refuse(detail)
        challenge = %(#{@challenge}, error="invalid_token", error_description="#{detail}")
        raise BadRequest.new(detail, status: 401, title: "Unauthorized", header: "Authorization",
                                     headers: { "www-authenticate" => challenge })
      end

      def verification(options)
        found = { algorithms: @algorithms, required_claims: ["exp"], exp_leeway: @leeway, nbf_leeway: @leeway }
        found.update(iss: options[:issuer], verify_iss: true) if options[:issuer]
        found.update(aud: options[:audience], verify_aud: true) if options[:audience]
        found
      end

      def check(options)
        unknown = (options.keys - OPTIONS).first
        wrong("#{unknown}: is not known#{Nearest.hint(unknown, OPTIONS)}") if unknown
        wrong("write either key: or jwks_url:") if options[:key].nil? == options[:jwks_url].nil?
        check_algorithms(options[:algorithms])
        %i[issuer audience].each do |name|
          wrong("#{name}: must be a String or an Array of Strings, got #{OptionCheck.shown(options[name])}") \
            unless Array(options[name]).all?(String) && options[name] != []
        end
        leeway = options.fetch(:leeway, 0)
        wrong("leeway: must be 0 to #{MOST_LEEWAY} seconds, got #{leeway.inspect}") unless leeway.is_a?(Integer) &&
                                                                                           leeway.between?(0, MOST_LEEWAY)
        wrong("jwks_url: has public keys only; write algorithms: such as RS256 or ES256") if options[:jwks_url] &&
                                                                                             (options[:algorithms] - PUBLIC).any?
      end

      def check_algorithms(algorithms)
        wrong("algorithms: must be an Array such as %w[RS256], got #{OptionCheck.shown(algorithms)}") \
          unless algorithms.is_a?(Array) && algorithms.any?
        other = (algorithms - SECRETS.keys - PUBLIC).first
        wrong("algorithms: #{other.inspect} is not one of #{[*SECRETS.keys, *PUBLIC].join(", ")}") if other
        wrong("algorithms: HS… beside others would let a public key be used as a secret; write one family") \
          if algorithms.any? { |name| SECRETS.key?(name) } && algorithms.intersect?(PUBLIC)
      end

      def keys(given)
        given = [given] unless given.is_a?(Array)
        wrong("key: must not be empty") if given.empty?
        given.map { |key| SECRETS.key?(@algorithms.first) ? secret(key) : public_key(key) }.freeze
      end

      def secret(key)
        least = SECRETS.values_at(*@algorithms).max
        fits = key.is_a?(String) && key.bytesize >= least && !key.start_with?("-----BEGIN")
        return key.dup.freeze if fits

        wrong("key: must be a random String of at least #{least} bytes for #{@algorithms.join(", ")}, as of `openssl rand -hex 64`")
      end

      def public_key(key)
        key = OpenSSL::PKey.read(key) if key.is_a?(String)
        key.is_a?(OpenSSL::PKey::PKey) ? key : wrong("key: must be a public key (OpenSSL::PKey or PEM) for #{@algorithms.join(", ")}")
      rescue OpenSSL::PKey::PKeyError
        wrong("key: cannot be read as PEM; a public key begins with -----BEGIN PUBLIC KEY-----")
      end

      def wrong(text)
        raise ConfigurationError, "authenticate jwt: #{text}"
      end
    end
  end
end
