# frozen_string_literal: true

module Castellan
  module Profile
    # Decides whether a request is profiled and may open the profiler's page. Frozen.
    #
    #   Authorization.new(environment: "development")                          # requests from localhost
    #   Authorization.new(secret: ENV.fetch("CASTELLAN_SECRET"))               # requests with a signed token
    #   Authorization.new(authorize: ->(env) { env["warden"]&.user&.admin? })  # if the block allows it
    #
    # The token is read from the header Castellan-Token or from the cookie that a signed URL sets. Without
    # `authorize:`, development is open to localhost: the peer is a loopback address, the Host is localhost
    # (this blocks DNS rebinding), and no header shows a reverse proxy (PROXY_FIELD, or `Connection: close`,
    # which nginx sends with a bare `proxy_pass`). A container's peer is not loopback: use the signed URL.
    #
    # A proxy on the same machine that adds no header and keeps connections open looks like localhost. Behind
    # such a reverse proxy, pass `authorize:`.
    class Authorization
      COOKIE = "castellan_token"
      HEADER = "HTTP_CASTELLAN_TOKEN"
      LOOPBACK = /\A(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})\z/i
      LOCAL_HOST = /\A(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?\z/i
      # Headers that reverse proxies, load balancers, CDNs, tunnels and hosting platforms add; clients do not.
      PROXY_FIELD = /\AHTTP_(?:
        .*FORWARDED.* | .*(?:CLIENT|REAL|CONNECTING|REMOTE|USER|PEER|SOURCE|PROXYUSER)_(?:IP|ADDR|ADDRESS|PORT) | .*EXTERNAL_ADDRESS |
        VIA | CF_.* | CDN_.* | CLOUDFRONT_.* | AKAMAI_.* | FASTLY_.* | FLY_.* | NGROK_.* | TAILSCALE_.* | SURROGATE_.* |
        MAX_FORWARDS | FRONT_END_HTTPS | SSL_.* | PROXY_.* |
        X_(?:AMZ|AMZN|ENVOY|AZURE|FD|ARR|MS|APPENGINE|GOOGLE|CLOUD|VERCEL|NF|HEROKU|RENDER|RAILWAY|KONG|TRAEFIK|VARNISH|CACHE|PROXY|
             ORIGINAL|REWRITE|ACCEL|SENDFILE|SSL|TLS|HTTPS|HOST|SCHEME|URL|B3|ISTIO|REQUEST_(?:START|ID)|QUEUE_START|CLIENT_CERT)(?:_.*)?
      )\z/x
      IN_COOKIES = /(?:\A|;\s*)castellan_token=([^;\s]+)/
      IN_LINK = /(?:\A|&)castellan_token=([^&]+)/
      private_constant :LOOPBACK, :LOCAL_HOST, :PROXY_FIELD, :IN_COOKIES, :IN_LINK

      # @return [Token, nil]
      attr_reader :token

      # @param authorize [#call, nil] called with the Rack environment; a truthy result authorizes the request
      # @param secret [String, nil] signs the tokens; nil disables them
      # @param environment [String, nil] without `authorize:`, "development" opens the page to localhost
      # @raise [ConfigurationError] if `authorize` has no `call`, or the secret is too short
      def initialize(authorize: nil, secret: nil, environment: nil)
        unless authorize.nil? || authorize.respond_to?(:call)
          raise ConfigurationError, "authorize: must answer call(env), got #{authorize.inspect}"
        end

        @authorize = authorize
        @token = secret && Token.new(secret)
        @open = authorize.nil? && environment == "development"
        freeze
      end

      # @param env [Hash] Rack environment
      # @return [Boolean]
      def allows?(env) = @authorize&.call(env) || (@open && here?(env)) || (@token ? !shown(env).nil? : false)

      # @param env [Hash] Rack environment
      # @return [String, nil] the valid token of a signed URL
      def linked(env)
        query = env["QUERY_STRING"]
        text = query.b[IN_LINK, 1] if @token && query&.include?(COOKIE)
        text if @token&.valid?(text)
      end

      # @param env [Hash] Rack environment
      # @return [String, nil] the valid token from the header or the cookie
      def shown(env)
        cookies = env["HTTP_COOKIE"]
        text = env[HEADER] || (cookies.b[IN_COOKIES, 1] if cookies&.include?(COOKIE))
        text if text && @token&.valid?(text)
      end

      # @return [Boolean] whether development is open to localhost
      def open? = @open

      private

      def here?(env)
        LOOPBACK.match?(env["REMOTE_ADDR"].to_s) && LOCAL_HOST.match?((env["HTTP_HOST"] || env["SERVER_NAME"]).to_s) &&
          !like_nginx?(env) && env.each_key.none? { |name| PROXY_FIELD.match?(name) }
      end

      # nginx with a bare proxy_pass sends `Connection: close` and the upstream's Host, and no header of its
      # own. Do not compare the HTTP version instead: WEBrick puts its own into the environment.
      def like_nginx?(env) = env["HTTP_CONNECTION"].to_s.casecmp?("close")
    end
  end
end
