# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Reads the cache key of a request and the client's cache directives (RFC 9111 §2, §5.2.1).
    #
    # The key is the client's exact URI: scheme, authority, path and query. Fields from which an application
    # may derive another URI (X-Forwarded-Host, X-Original-URL, …) form the {#context}, and so does
    # Turbo-Frame, because turbo-rails omits the layout for it. Each context has its own stored response, so
    # that no client can change another client's response with such a field. A purge of the URI deletes all of
    # them.
    class ClientRequest
      PREFIX = "castellan:http:1:"
      # Unkeyed inputs of web cache poisoning (Kettle 2018) and cache-poisoned denial of service (Nguyen
      # 2019).
      FORWARDING = %w[HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PROTO HTTP_X_FORWARDED_PORT HTTP_FORWARDED HTTP_X_FORWARDED_SCHEME
                      HTTP_X_FORWARDED_SSL HTTP_X_FORWARDED_SERVER HTTP_X_FORWARDED_PREFIX HTTP_X_HOST HTTP_X_ORIGINAL_HOST
                      HTTP_X_ORIGINAL_URL HTTP_X_REWRITE_URL HTTP_X_HTTP_METHOD_OVERRIDE HTTP_X_HTTP_METHOD HTTP_X_METHOD_OVERRIDE
                      HTTP_X_URL_SCHEME HTTP_FRONT_END_HTTPS HTTP_TURBO_FRAME HTTP_HX_REQUEST].freeze
      # Fields that identify the sender. RFC 9111 has rules only for Authorization; the others rule out
      # heuristic freshness.
      IDENTITY = %w[HTTP_COOKIE HTTP_AUTHORIZATION HTTP_PROXY_AUTHORIZATION HTTP_X_API_KEY HTTP_X_AUTH_TOKEN
                    HTTP_X_ACCESS_TOKEN HTTP_X_AUTHORIZATION REMOTE_USER HTTP_REMOTE_USER HTTP_X_REMOTE_USER HTTP_X_FORWARDED_USER
                    HTTP_X_FORWARDED_EMAIL HTTP_X_AUTH_REQUEST_USER HTTP_X_AUTH_REQUEST_EMAIL SSL_CLIENT_S_DN HTTP_X_SSL_CLIENT_CERT
                    HTTP_X_FORWARDED_CLIENT_CERT HTTP_X_AMZN_OIDC_IDENTITY HTTP_X_AMZN_OIDC_DATA HTTP_CF_ACCESS_JWT_ASSERTION
                    HTTP_X_GOOG_IAP_JWT_ASSERTION HTTP_X_MS_CLIENT_PRINCIPAL HTTP_TAILSCALE_USER_LOGIN].freeze
      AUTHORITY = /\A[a-z0-9.:\[\]_-]+\z/
      WITHOUT_DEFAULT_PORT = /\A[a-z0-9.:\[\]_-]+(?<!:80|:443|:)\z/
      PORTS = { "http" => "80", "https" => "443" }.freeze
      PEERS = /(?:\A|;)\s*(?:for|by)=(?:"[^"]*"|[^;,]*)/i
      # Without escapes and separators in quotes, which applications read in different ways.
      PAIR = /(?:for|by|proto|host)=(?:"[^"\\;,]*"|[^"\\;,=\s]+)/i
      ELEMENT = /\s*#{PAIR}(?:;\s*#{PAIR})*\s*/
      FORWARDED_ELEMENT = /\A#{ELEMENT}\z/
      FORWARDED_LIST = /\A#{ELEMENT}(?:,#{ELEMENT})*\z/
      NO_CACHE = Directives.parse("no-cache")
      NO_CONTEXT = ""
      private_constant :FORWARDING, :IDENTITY, :AUTHORITY, :WITHOUT_DEFAULT_PORT, :PORTS, :PEERS
      private_constant :NO_CACHE, :NO_CONTEXT, :PAIR, :ELEMENT, :FORWARDED_ELEMENT, :FORWARDED_LIST

      # @return [Hash] Rack environment; the application may change it
      attr_reader :env
      # @return [String] "GET"
      attr_reader :http_method
      # @return [String] key of the URI in the store
      attr_reader :key
      # @return [String] the forwarding fields; empty for a request without them
      attr_reader :context

      # @param url [String] "https://example.com/posts?page=2"
      # @return [String] the key of its URI
      def self.key(url)
        text = url.is_a?(String) ? url : ""
        text = text.b.gsub(/[\x80-\xff]/n) { |byte| format("%%%02X", byte.ord) } unless text.ascii_only? # as clients send it
        scheme, authority, rest = text.match(%r{\A(https?)://([^/?#]+)([^#]*)}i)&.captures
        unless scheme
          raise ConfigurationError, "an absolute URL such as \"https://example.com/posts\" is needed, got #{OptionCheck.shown(url)}; " \
                                    "write for example HTTPCache.purge(\"https://example.com/posts\")"
        end

        scheme = scheme.downcase
        authority = authority.downcase.delete_suffix(":#{PORTS[scheme]}").delete_suffix(":")
        "#{PREFIX}#{scheme}://#{authority}#{"/" unless rest.start_with?("/")}#{rest.delete_suffix("?")}"
      end

      # @param env [Hash] Rack environment
      # @param directives [Boolean] whether the client's Cache-Control is read
      def initialize(env, directives: true)
        @env = env
        @original = nil
        @http_method = env["REQUEST_METHOD"]
        @reads_directives = directives
        @scheme = env["rack.url_scheme"] || "http"
        @authority = bytes("HTTP_HOST") || "#{env["SERVER_NAME"]}:#{env["SERVER_PORT"]}"
        @context = NO_CONTEXT
        note_forwarding(env)
        @key = key_of(env["SCRIPT_NAME"], env["PATH_INFO"], env["QUERY_STRING"])
      end

      # Copies the environment before the application runs. Some middlewares delete Authorization or rewrite
      # Accept-Language, but the client's own fields decide whether a response may be stored, and for whom.
      def preserve
        @original ||= @env.dup
      end

      # @return [String] equal for requests that wait for each other. Requests with credentials have their own
      #   group: their responses are rarely stored, which must not stop the others from waiting
      def group
        @group ||= [@key, @context, *("identified" if identified?), *("authorized" if authorized?)].join("\0")
      end

      # @return [Hash] the environment as the client sent it
      def original
        @original || @env
      end

      # @return [String] scheme and authority
      def origin
        "#{@scheme}://#{@authority}"
      end

      # @return [String] absolute
      def url
        @key.delete_prefix(PREFIX)
      end

      def head?
        @http_method == "HEAD"
      end

      # @return [Boolean] whether the request identifies its sender, so that the response may be personal
      def identified?
        IDENTITY.any? { |name| original.key?(name) }
      end

      def authorized?
        original.key?("HTTP_AUTHORIZATION")
      end

      # @return [Boolean] whether the request has content (a "fat GET"), upgrades the protocol, or is
      #   {#ambiguous?}
      def unusual?
        length = @env["CONTENT_LENGTH"]
        (length.nil? || length.empty? ? unsized_content? : length != "0") || @env.key?("HTTP_TRANSFER_ENCODING") || ambiguous? ||
          (@env.key?("HTTP_UPGRADE") && @env["HTTP_UPGRADE"] != "h2c")
      end

      # @return [Boolean] whether the path contains a question mark after the server decoded it, so that its key
      #   is that of another path with a query
      def ambiguous?
        original["PATH_INFO"].include?("?")
      end

      # @return [Directives] the client's; Pragma counts if Cache-Control is absent
      def control
        @control ||= if !@reads_directives then Directives::NONE
                     elsif (value = original["HTTP_CACHE_CONTROL"]) then Directives.parse(value)
                     elsif bytes("HTTP_PRAGMA")&.match?(/(?:\A|,)\s*no-cache\s*(?:,|\z)/i) then NO_CACHE
                     else Directives::NONE
                     end
      end

      # @return [Boolean] whether the client forbids storing the response, even if `directives:` is false
      def no_store?
        value = original["HTTP_CACHE_CONTROL"] and Directives.parse(value).key?("no-store")
      end

      private

      # Falcon removes Transfer-Encoding, and HTTP/2 has none, so that only the input shows content of unknown size.
      def unsized_content?
        input = @env["rack.input"]
        if input.respond_to?(:size) then input.size.positive?
        else input.respond_to?(:empty?) && !input.empty?
        end
      end

      def key_of(mount, path, query)
        query = nil if query && query.empty?
        key = "#{PREFIX}#{@scheme}://#{@authority}#{mount}#{path}#{"?#{query}" if query}"
        key.ascii_only? ? key : key.b
      rescue Encoding::CompatibilityError
        key_of(*[mount, path, query].map { |part| part&.b })
      end

      def bytes(name)
        HeaderFields.bytes(original[name])
      end

      def note_forwarding(env)
        uri = bytes("REQUEST_URI")
        absolute = uri && !uri.start_with?("/") && uri != "*"
        return unless absolute || forwarded?(env) || !@authority.match?(WITHOUT_DEFAULT_PORT)

        present = FORWARDING.select { |name| env.key?(name) }
        present.push("REQUEST_URI") if absolute
        host = @authority
        forwarded = env["HTTP_FORWARDED"] && bytes("HTTP_FORWARDED")
        note_forwarded(forwarded) if forwarded
        @authority = @authority.downcase
        rest = present.reject { |name| consumed?(name, bytes(name)) && !forwarded }
        @authority = @authority.delete_suffix(":#{PORTS[@scheme]}").delete_suffix(":")
        note_context(rest, host)
      end

      # Whether any field of FORWARDING is present. Unrolled, because a loop takes four times as long, and
      # most requests have none of them.
      def forwarded?(env)
        env["HTTP_X_FORWARDED_HOST"] || env["HTTP_X_FORWARDED_PROTO"] || env["HTTP_X_FORWARDED_PORT"] || env["HTTP_FORWARDED"] ||
          env["HTTP_X_FORWARDED_SCHEME"] || env["HTTP_X_FORWARDED_SSL"] || env["HTTP_X_FORWARDED_SERVER"] ||
          env["HTTP_X_FORWARDED_PREFIX"] || env["HTTP_X_HOST"] || env["HTTP_X_ORIGINAL_HOST"] || env["HTTP_X_ORIGINAL_URL"] ||
          env["HTTP_X_REWRITE_URL"] || env["HTTP_X_HTTP_METHOD_OVERRIDE"] || env["HTTP_X_HTTP_METHOD"] ||
          env["HTTP_X_METHOD_OVERRIDE"] || env["HTTP_X_URL_SCHEME"] || env["HTTP_FRONT_END_HTTPS"] ||
          env["HTTP_TURBO_FRAME"] || env["HTTP_HX_REQUEST"]
      end

      def note_context(names, host)
        parts = names.map do |name|
          value = bytes(name)
          value = value.gsub(PEERS, "") if name == "HTTP_FORWARDED" && value.match?(FORWARDED_LIST)
          "#{name}=#{value}"
        end
        # A Host such as "example.org/a" would produce the URI of another path.
        parts << "host=#{host}" unless host == @authority && host.match?(AUTHORITY)
        @context = parts.join("\0")
      end

      # The proto and host of one element become part of the URI (RFC 7239 §4), so that a purge of the URI that clients
      # see finds it. It remains in the context with all other fields, because some applications ignore it.
      def note_forwarded(value)
        return unless value.match?(FORWARDED_ELEMENT)

        proto, host = %w[proto host].map { |name| value[/(?:\A|;)\s*#{name}="?([^";\s]+)/i, 1]&.downcase }
        @scheme = proto if PORTS.key?(proto)
        @authority = host if host&.match?(AUTHORITY)
      end

      # The fields of one's own reverse proxy become part of the URI.
      def consumed?(name, value)
        case name
        when "HTTP_X_FORWARDED_PROTO" then %w[http https].include?(value) && (@scheme = value)
        when "HTTP_X_FORWARDED_HOST" then value.match?(AUTHORITY) && (@authority = value)
        when "HTTP_X_FORWARDED_PORT" then value == PORTS[@scheme]
        end
      end
    end
  end
end
