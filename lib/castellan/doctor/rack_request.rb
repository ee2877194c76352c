# frozen_string_literal: true

require "rack/mock_request"

module Castellan
  module Doctor
    # Builds the Rack environment of the examined request.
    # Only GET or HEAD, because it is sent many times.
    #
    #   RackRequest.new("/users?role=admin", headers: { "Authorization" => "Bearer …" }).env
    class RackRequest
      VERBS = %w[GET HEAD].freeze
      NOT_PREFIXED = %w[CONTENT_TYPE CONTENT_LENGTH].freeze
      private_constant :VERBS, :NOT_PREFIXED

      # @return [String] the absolute URL
      # @return [String] the path with the query string
      # @return [String] "GET" or "HEAD"
      # @return [Hash{String => String}]
      attr_reader :url, :path, :verb, :headers

      # @param target [String] "/users", or a URL with the scheme and host for the application
      # @raise [Error] if it is not a path or URL, or the verb is not GET or HEAD
      def initialize(target, verb: "GET", headers: {})
        @verb = verb.upcase
        raise Error, "the doctor repeats a request many times, so it sends GET and HEAD only, not #{@verb}" unless VERBS.include?(@verb)

        @url = absolute(target)
        @path = @url.sub(%r{\Ahttps?://[^/?]*}i, "").sub(%r{\A(?!/)}, "/")
        @headers = headers
        env
      rescue URI::InvalidURIError => error
        raise Error, "#{target.inspect} is not a path or a URL: #{error.message}; write it as /path?name=value"
      end

      # @return [Hash] a new Rack environment
      def env
        Rack::MockRequest.env_for(@url, method: verb, "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => host).tap do |env|
          @headers.each { |name, value| env[variable(name)] = value }
        end
      end

      # @return [RackRequest] a copy with additional headers
      def with(headers) = RackRequest.new(url, verb: verb, headers: { **@headers, **headers })

      # @return [String] the host, and the port if the URL has one
      def host = @url[%r{\Ahttps?://([^/?]*)}i, 1]

      def to_s = "#{verb} #{path}"

      private

      def absolute(target)
        return "http://localhost#{target}" if target.start_with?("/")
        return target.sub(/#.*/, "") if target.match?(%r{\Ahttps?://[^/?]}i)

        raise Error, "#{target.inspect} is not a path or a URL; write it as /path?name=value"
      end

      def variable(name)
        upper = name.upcase.tr("-", "_")
        NOT_PREFIXED.include?(upper) ? upper : "HTTP_#{upper}"
      end
    end
  end
end
