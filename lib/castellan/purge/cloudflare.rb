# frozen_string_literal: true

require "json"
require_relative "requests"

module Castellan
  class Purge
    # Purges documents from Cloudflare by the tags in Cache-Tag.
    #
    #   zone = "023e105f4ecef8ad9ca31a8372d0c353"
    #   Cloudflare.new(zone: zone, token: ENV.fetch("CLOUDFLARE_TOKEN")).purge(%w[posts/7])
    #
    # See https://developers.cloudflare.com/cache/how-to/purge-cache/purge-by-tags/.
    class Cloudflare
      include ShortInspect # without the token

      MOST_TAGS = 100 # in one request
      private_constant :MOST_TAGS

      # @param zone [String] the id of the zone
      # @param token [String] an API token with the permission Cache Purge
      # @param url [String] of the API
      # @param timeout [Numeric] seconds for each request
      # @raise [ConfigurationError] if an option is invalid
      def initialize(zone:, token:, url: "https://api.cloudflare.com", timeout: 5)
        OptionCheck.text(self.class, :zone, zone, "\"023e105f4ecef8ad9ca31a8372d0c353\"")
        OptionCheck.text(self.class, :token, token, "ENV.fetch(\"CLOUDFLARE_TOKEN\")", secret: true)
        @path = "/client/v4/zones/#{zone}/purge_cache"
        @fields = { "authorization" => "Bearer #{token}", "content-type" => "application/json" }
        @requests = Requests.new(url, seconds: timeout)
      end

      # @param tags [Array<String>]
      # @raise [Error] if Cloudflare does not accept the purge
      def purge(tags)
        @requests.in_slices(tags, MOST_TAGS) do |slice|
          Net::HTTP::Post.new(@path, @fields).tap { |request| request.body = JSON.generate(tags: slice) }
        end
      end
    end
  end
end
