# frozen_string_literal: true

require "net/http"
require "timeout"
require "uri"

module Castellan
  class Purge
    # Sends a batch of requests to a proxy over one connection.
    #
    #   Requests.new("http://127.0.0.1:6081", seconds: 2).call([Net::HTTP::Get.new("/")])
    class Requests
      # A response that is no success; with the seconds of Retry-After, if it is a 429.
      Failure = Struct.new(:text, :retry_after)
      private_constant :Failure

      # @param url [String] of the proxy
      # @param seconds [Numeric] timeout of a request
      # @raise [ConfigurationError] if the URL is not one of http or https, or the seconds are not above 0
      def initialize(url, seconds:)
        @uri = url.to_s.match?(%r{\Ahttps?://}) && URI.parse(url)
        @seconds = OptionCheck.seconds("a proxy's", :timeout, seconds, 5)
        return if @uri

        raise ConfigurationError, "a proxy's URL must begin with http:// or https://, got #{url.inspect}; write for example " \
                                  "\"http://127.0.0.1:6081\""
      end

      # Sends every request, also after one that fails, but none after a 429.
      # @param requests [Array<Net::HTTPRequest>]
      # @yieldparam request [Net::HTTPRequest] one whose response is a success
      # @raise [Error] unless every response is a success
      def call(requests, &accepted)
        failures = requests.any? ? connect { |http| failures(requests, http, &accepted) } : []
        return if failures.empty?

        raise Error.new("#{@uri.host}:#{@uri.port} answered #{failures.first(3).map(&:text).join(", ")}",
                        retry_after: failures.last.retry_after)
      rescue Error
        raise
      rescue StandardError => error
        raise Error, "#{@uri.host}:#{@uri.port} does not answer (#{error.class}: #{error.message})"
      end

      # Purges so many tags in each request.
      # @param tags [Array<String>]
      # @yieldparam slice [Array<String>]
      # @yieldreturn [Net::HTTPRequest]
      # @raise [Error] with the tags that were accepted, so that only the others are sent again
      def in_slices(tags, size)
        slices = tags.each_slice(size).to_h { |slice| [yield(slice), slice] }.compare_by_identity
        accepted = []
        call(slices.keys) { |request| accepted.concat(slices[request]) }
      rescue Error => error
        raise Error.new(error.message, accepted: accepted, retry_after: error.retry_after)
      end

      # Sends the requests until one gets no response, or the time is over.
      # @param requests [Array<Net::HTTPRequest>]
      # @param within [Numeric] seconds, after which it begins no further request
      # @return [Array<Net::HTTPResponse>] of the first requests
      def try(requests, within:)
        responses = []
        end_ns = Clock.monotonic_ns + (within * 1_000_000_000)
        in_time = requests.lazy.take_while { Clock.monotonic_ns < end_ns }
        connect { |http| in_time.each { |request| responses << response(request, http) } } if requests.any?
        responses
      rescue StandardError
        responses
      end

      private

      def connect(&block)
        Net::HTTP.start(@uri.host, @uri.port, nil, use_ssl: @uri.scheme == "https", max_retries: 0, open_timeout: @seconds,
                                                   read_timeout: @seconds, write_timeout: @seconds, &block)
      end

      # Net::HTTP limits each read, so a response of which a byte arrives now and then would never end. The class makes
      # the error one that Net::HTTP rescues, to close the connection.
      def response(request, http)
        Timeout.timeout(@seconds, Timeout::Error) { http.request(request) }
      end

      def failures(requests, http)
        requests.each_with_object([]) do |request, failures|
          failure = failure(request, http)
          next (yield request if block_given?) unless failure

          failures << failure
          break failures if failure.retry_after
        end
      end

      # Net::HTTP raises errors of a dozen unrelated classes.
      def failure(request, http)
        response = response(request, http)
        return if response.is_a?(Net::HTTPSuccess)

        Failure.new("#{request.method} #{request.path} with #{response.code}", (response["retry-after"].to_i if response.code == "429"))
      rescue StandardError => error
        Failure.new("#{request.method} #{request.path} with #{error.class}: #{error.message}")
      end
    end
  end
end
