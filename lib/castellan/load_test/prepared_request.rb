# frozen_string_literal: true

require "uri"

module Castellan
  module LoadTest
    # Builds the bytes of a request once, so that the measurement does not include it. Frozen.
    #
    #   request = PreparedRequest.new("http://127.0.0.1:3000/users?page=2", headers: { "Accept" => "*/*" })
    #   request.bytes # => "GET /users?page=2 HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n…"
    #
    # GET and HEAD only: a load test must not write.
    class PreparedRequest
      METHODS = %w[GET HEAD].freeze
      TOKEN = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/ # RFC 9110, 5.6.2
      private_constant :METHODS, :TOKEN

      # @return [String] the URL as passed; the host to connect to; the bytes to send; "GET" or "HEAD"
      attr_reader :url, :host, :bytes, :http_method
      # @return [Integer]
      attr_reader :port

      # @raise [ConfigurationError] if the URL, a header or the method is invalid
      def initialize(url, headers: {}, http_method: "GET", keep_alive: true)
        @url = url.to_s
        @http_method = checked_method(http_method)
        uri = parse(@url)
        @host = uri.hostname
        @port = uri.port
        @tls = uri.scheme.casecmp?("https")
        @keep_alive = keep_alive
        @bytes = head(uri, checked(headers)).b.freeze
        freeze
      end

      def tls? = @tls
      def keep_alive? = @keep_alive
      def body_expected? = http_method != "HEAD"

      private

      def checked_method(name)
        name = name.to_s.upcase
        METHODS.include?(name) ? name : raise(ConfigurationError, "a load test sends #{METHODS.join(" or ")}, not #{name.inspect}")
      end

      def parse(text)
        uri = URI.parse(text)
        return uri if uri.is_a?(URI::HTTP) && uri.hostname && !uri.hostname.empty?

        raise ConfigurationError, "#{text.inspect} is not a URL to load: write #{suggestion(text)}"
      rescue URI::InvalidURIError
        raise ConfigurationError, "#{text.inspect} is not a URL: write one like http://127.0.0.1:3000/users, with spaces and " \
                                  "other special characters percent-encoded (%20)"
      end

      def suggestion(text)
        rest = text.sub(%r{\A[a-z]*://}i, "")
        rest.match?(%r{\A[\w.-]+(:\d+)?(/|\z)}) ? "http://#{rest}" : "one like http://127.0.0.1:3000/users"
      end

      def checked(headers) = headers.to_h { |name, value| [header_name(name.to_s), header_value(name, value.to_s)] }

      def header_name(name)
        return name if TOKEN.match?(name)

        raise ConfigurationError, "#{name.inspect} is not a header name: write 'Name: value'"
      end

      def header_value(name, value)
        return value.strip unless value.match?(/[\r\n\0]/)

        raise ConfigurationError, "the value of the header #{name} has a line break: write it in one line"
      end

      def head(uri, headers)
        lines = defaults(uri).reject { |name, _| headers.any? { |given, _| given.casecmp?(name) } }.merge(headers)
        "#{http_method} #{uri.request_uri} HTTP/1.1\r\n#{lines.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n"
      end

      def defaults(uri)
        defaults = { "Host" => host_header(uri), "Accept" => "*/*", "User-Agent" => "castellan" }
        defaults["Authorization"] = basic(uri) if uri.userinfo
        defaults["Connection"] = "close" unless keep_alive?
        defaults
      end

      def host_header(uri) = uri.port == uri.default_port ? uri.host : "#{uri.host}:#{uri.port}"

      def basic(uri) = "Basic #{[URI.decode_www_form_component(uri.userinfo.gsub("+", "%2B"))].pack("m0")}"
    end
  end
end
