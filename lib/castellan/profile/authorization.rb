# frozen_string_literal: true

module Castellan
  module Profile
    # Decides whether a request is profiled and may open the profiler's page. Frozen.
    #
    #   Authorization.new(environment: "development")                          # allows requests from localhost
    #   Authorization.new(secret: ENV.fetch("CASTELLAN_SECRET"))               # allows requests with a signed token
    #   Authorization.new(authorize: ->(env) { env["warden"]&.user&.admin? })  # allows what the block allows
    #
    # The token is in the header Castellan-Token, or in the cookie that a signed URL sets. Without
    # `authorize:`, development is open to localhost: the peer is a loopback address, the Host is localhost
    # (against DNS rebinding), and no header is that of a reverse proxy (PROXY_FIELD, or `Connection: close`,
    # which nginx sends with a bare `proxy_pass`). The peer of a container is not loopback: use the signed URL
    # there.
    #
    # A reverse proxy on the same machine that adds no header and keeps connections open looks like localhost.
    # Behind such a proxy, pass `authorize:`.
    class Authorization
      COOKIE = "castellan_token"
      HEADER = "HTTP_CASTELLAN_TOKEN"
      LOOPBACK = /\A(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})\z/i
      LOCAL_HOST = /\A(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?\z/i
      # Headers that reverse proxies, load balancers, CDNs, tunnels and hosting platforms add, and clients do
      # not.
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

      # @param authorize [#call, nil] receives the Rack environment; a truthy result allows the request
      # @param secret [String, nil] signs the tokens; nil disables them
      # @param environment [String, nil] without `authorize:`, "development" opens the page to localhost
      # @raise [ConfigurationError] if `authorize` has no `call`, or the secret is too short
      def initialize(authorize: nil, secret: nil, environment: nil)
        unless authorize.nil? || authorize.respond_to?(:call)
          raise ConfigurationError, "Castellan::Profile::Middleware authorize: must respond to call, got " \
                                    "#{OptionCheck.shown(authorize)}; write for example ->(env) { env[\"warden\"]&.user&.admin? }"
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
      # @return [String, nil] the token of a signed URL, if it is valid
      def linked(env)
        query = env["QUERY_STRING"]
        text = query.b[IN_LINK, 1] if @token && query&.include?(COOKIE)
        text if @token&.valid?(text)
      end

      # @param env [Hash] Rack environment
      # @return [String, nil] the token in the header or the cookie, if it is valid
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

      # nginx with a bare `proxy_pass` sends `Connection: close`, the Host of the upstream, and no header of
      # its own. Do not compare the HTTP version instead, because WEBrick puts its own into the environment.
      def like_nginx?(env) = env["HTTP_CONNECTION"].to_s.casecmp?("close")
    end
  end
end
