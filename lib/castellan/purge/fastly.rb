# frozen_string_literal: true

require "json"
require_relative "requests"

module Castellan
  class Purge
    # Purges documents from Fastly by the tags in Surrogate-Key.
    #
    #   Fastly.new(service: "SU1Z0isxPaozGVKXdv0eY", token: ENV.fetch("FASTLY_TOKEN")).purge(%w[posts/7])
    #
    # See https://www.fastly.com/documentation/reference/api/purging/.
    class Fastly
      include ShortInspect # without the token

      MOST_KEYS = 256 # in one request
      private_constant :MOST_KEYS

      # @param service [String] the id of the service
      # @param token [String] an API token with permission to purge
      # @param soft [Boolean] whether a purge only marks documents as stale, so that Fastly may send them
      #   while it fetches new ones
      # @param url [String] of the API
      # @param timeout [Numeric] seconds for each request
      # @raise [ConfigurationError] if an option is invalid
      def initialize(service:, token:, soft: false, url: "https://api.fastly.com", timeout: 5)
        OptionCheck.text(self.class, :service, service, "\"SU1Z0isxPaozGVKXdv0eY\"")
        OptionCheck.text(self.class, :token, token, "ENV.fetch(\"FASTLY_TOKEN\")", secret: true)
        @path = "/service/#{service}/purge"
        @fields = { "fastly-key" => token, "content-type" => "application/json", "accept" => "application/json" }
        @fields["fastly-soft-purge"] = "1" if soft
        @requests = Requests.new(url, seconds: timeout)
      end

      # @param tags [Array<String>]
      # @raise [Error] if Fastly does not accept the purge
      def purge(tags)
        @requests.in_slices(tags, MOST_KEYS) do |slice|
          Net::HTTP::Post.new(@path, @fields).tap { |request| request.body = JSON.generate(surrogate_keys: slice) }
        end
      end
    end
  end
end
