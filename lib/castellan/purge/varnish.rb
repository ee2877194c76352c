# frozen_string_literal: true

require_relative "requests"

module Castellan
  class Purge
    # Bans documents in Varnish by their tags.
    #
    #   Varnish.new("http://127.0.0.1:6081").purge(Tags.digests(%w[posts/7 posts.title]))
    #
    # Needs the configuration that `castellan proxy varnish` prints.
    class Varnish
      MOST_TAGS = 250 # in one header field
      private_constant :MOST_TAGS

      # @param url [String] of Varnish, as seen from this process
      # @param timeout [Numeric] seconds
      def initialize(url, timeout: 2)
        @requests = Requests.new(url, seconds: timeout)
      end

      # @param tags [Array<String>] hexadecimal digits, which need no escaping in a pattern
      # @raise [Error] if Varnish does not accept the purge
      def purge(tags)
        @requests.call(patterns(tags).map { |pattern|
          Net::HTTPGenericRequest.new("PURGE", false, true, "/", { "castellan-purge" => pattern })
        })
      end

      private

      # @return [Array<String>] regular expressions that match tags between commas
      def patterns(tags)
        tags.each_slice(MOST_TAGS).map { |slice| ",(#{slice.join("|")})," }
      end
    end
  end
end
