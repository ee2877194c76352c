# frozen_string_literal: true

require "net/http"
require "uri"

module Castellan
  class Purge
    # Sends a batch of requests to a proxy over one connection.
    #
    #   Requests.new("http://127.0.0.1:6081", seconds: 2).call([Net::HTTP::Get.new("/")])
    class Requests
      # @param url [String] of the proxy
      # @param seconds [Numeric] timeout of a request
      # @raise [ConfigurationError] if the URL is not one of http or https
      def initialize(url, seconds:)
        @uri = url.to_s.match?(%r{\Ahttps?://}) && URI.parse(url)
        @seconds = seconds
        raise ConfigurationError, "a proxy's URL is such as \"http://127.0.0.1:6081\", got #{url.inspect}" unless @uri
      end

      # @param requests [Array<Net::HTTPRequest>]
      # @param missing [Boolean] whether 4xx counts as a success: a missing document needs no purge
      # @raise [Error] unless every response is a success; all requests are sent first
      def call(requests, missing: false)
        return if requests.empty?

        options = { use_ssl: @uri.scheme == "https", open_timeout: @seconds, read_timeout: @seconds, write_timeout: @seconds }
        Net::HTTP.start(@uri.host, @uri.port, nil, **options) do |http|
          failures = requests.filter_map { |request| failure(request, http.request(request), missing) }
          raise Error, "#{@uri.host}:#{@uri.port} answered #{failures.first(3).join(", ")}" if failures.any?
        end
      rescue SystemCallError, IOError, Timeout::Error, Net::ProtocolError, OpenSSL::SSL::SSLError, SocketError => error
        raise Error, "#{@uri.host}:#{@uri.port} does not answer (#{error.class}: #{error.message})"
      end

      private

      def failure(request, response, missing)
        return if response.is_a?(Net::HTTPSuccess) || (missing && response.is_a?(Net::HTTPClientError))

        "#{request.method} #{request.path} with #{response.code}"
      end
    end
  end
end
