# frozen_string_literal: true

module Castellan
  module Profile
    # Who may have requests profiled and see the page.
    #
    #   Authorization.new(environment: "development")                                    # whoever is on this machine
    #   Authorization.new(secret: ENV.fetch("CASTELLAN_SECRET"))                         # who has a signed token
    #   Authorization.new(authorize: ->(env) { env["warden"]&.user&.admin? })            # who the application says
    #
    # A token is taken from the header Castellan-Token or from the cookie that a signed link sets. With neither a block nor a token only
    # development is open, and only to this machine itself: the peer is loopback, it did not come through a proxy that says so, and the
    # Host is this machine's name, so that neither a proxy nor a rebound DNS name opens it. A container's peer is not loopback: take the
    # link. Who asks with `Connection: close`, as nginx does with nothing but a `proxy_pass`, is not let in either. What nobody can tell
    # from this machine is a proxy on it that names itself nowhere, puts this machine's name into Host and keeps its connections: whoever
    # has one before a server in development says with a block who is let in. Frozen.
    class Authorization
      COOKIE = "castellan_token"
      HEADER = "HTTP_CASTELLAN_TOKEN"
      LOOPBACK = /\A(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})\z/i
      LOCAL_HOST = /\A(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?\z/i
      FORWARDED = %w[HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PROTO HTTP_X_FORWARDED_PORT HTTP_X_FORWARDED_SERVER
                     HTTP_FORWARDED HTTP_VIA HTTP_X_REAL_IP HTTP_X_CLIENT_IP HTTP_CLIENT_IP HTTP_TRUE_CLIENT_IP
                     HTTP_CF_CONNECTING_IP HTTP_X_CLUSTER_CLIENT_IP HTTP_FASTLY_CLIENT_IP HTTP_X_FORWARDED].freeze
      IN_COOKIES = /(?:\A|;\s*)castellan_token=([^;\s]+)/
      IN_LINK = /(?:\A|&)castellan_token=([^&]+)/
      private_constant :LOOPBACK, :LOCAL_HOST, :FORWARDED, :IN_COOKIES, :IN_LINK

      # @return [Token, nil]
      attr_reader :token

      # @param authorize [#call, nil] asked with the Rack environment
      # @param secret [String, nil] of the tokens; without one there are none
      # @param environment [String, nil]
      def initialize(authorize: nil, secret: nil, environment: nil)
        unless authorize.nil? || authorize.respond_to?(:call)
          raise ConfigurationError, "authorize: must answer call(env), got #{authorize.inspect}"
        end

        @authorize = authorize
        @token = secret && Token.new(secret)
        @open = authorize.nil? && environment == "development"
        freeze
      end

      # @param env [Hash] of Rack
      # @return [Boolean]
      def allows?(env)
        return true if @authorize&.call(env) || (@open && here?(env))

        @token ? carried?(env) : false
      end

      # @param env [Hash] of Rack
      # @return [String, nil] the token of a signed link, when it is good
      def linked(env)
        query = env["QUERY_STRING"]
        text = query.b[IN_LINK, 1] if @token && query&.include?(COOKIE)
        text if @token&.valid?(text)
      end

      # @param env [Hash] of Rack
      # @return [String, nil] the token that came in a header or a cookie, when it is good
      def shown(env)
        text = env[HEADER] || env["HTTP_COOKIE"].to_s.b[IN_COOKIES, 1]
        text if @token&.valid?(text)
      end

      # @return [Boolean] whether development is open to this machine
      def open? = @open

      private

      def carried?(env)
        header = env[HEADER]
        return @token.valid?(header) if header

        cookies = env["HTTP_COOKIE"]
        cookies&.include?(COOKIE) ? @token.valid?(cookies.b[IN_COOKIES, 1]) : false
      end

      def here?(env)
        LOOPBACK.match?(env["REMOTE_ADDR"].to_s) && FORWARDED.none? { |name| env.key?(name) } && !like_nginx?(env) &&
          LOCAL_HOST.match?((env["HTTP_HOST"] || env["SERVER_NAME"]).to_s)
      end

      # How nginx asks with nothing but a proxy_pass: it names neither itself nor its client, and the Host is the upstream's. Which version
      # of HTTP it speaks is not told by every server (WEBrick tells its own).
      def like_nginx?(env) = env["HTTP_CONNECTION"].to_s.casecmp?("close")
    end
  end
end
