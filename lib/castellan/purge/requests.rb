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
      # @raise [ConfigurationError] if the URL is not one of http or https, or the seconds are not above 0
      def initialize(url, seconds:)
        @uri = url.to_s.match?(%r{\Ahttps?://}) && URI.parse(url)
        @seconds = OptionCheck.seconds("a proxy's", :timeout, seconds, 5)
        raise ConfigurationError, "a proxy's URL is such as \"http://127.0.0.1:6081\", got #{url.inspect}" unless @uri
      end

      # Sends every request, also after one that fails.
      # @param requests [Array<Net::HTTPRequest>]
      # @raise [Error] unless every response is a success
      def call(requests)
        failures = requests.any? ? connect { |http| requests.filter_map { |request| failure(request, http) } } : []
        raise Error, "#{@uri.host}:#{@uri.port} answered #{failures.first(3).join(", ")}" if failures.any?
      rescue Error
        raise
      rescue StandardError => error
        raise Error, "#{@uri.host}:#{@uri.port} does not answer (#{error.class}: #{error.message})"
      end

      # Sends the requests until one gets no response.
      # @param requests [Array<Net::HTTPRequest>]
      # @return [Array<Net::HTTPResponse>] of the first requests
      def try(requests)
        responses = []
        connect { |http| requests.each { |request| responses << http.request(request) } } if requests.any?
        responses
      rescue StandardError
        responses
      end

      private

      def connect(&block)
        Net::HTTP.start(@uri.host, @uri.port, nil, use_ssl: @uri.scheme == "https", max_retries: 0, open_timeout: @seconds,
                                                   read_timeout: @seconds, write_timeout: @seconds, &block)
      end

      # Net::HTTP raises errors of a dozen unrelated classes.
      def failure(request, http)
        response = http.request(request)
        "#{request.method} #{request.path} with #{response.code}" unless response.is_a?(Net::HTTPSuccess)
      rescue StandardError => error
        "#{request.method} #{request.path} with #{error.class}: #{error.message}"
      end
    end
  end
end
