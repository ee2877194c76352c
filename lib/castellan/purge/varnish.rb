# frozen_string_literal: true

require_relative "requests"

module Castellan
  class Purge
    # Bans documents in Varnish by their tags, which are hexadecimal digits. Needs the configuration that `castellan proxy varnish` prints.
    #
    #   Varnish.new("http://127.0.0.1:6081").purge(%w[posts/7 posts.title])
    class Varnish
      MOST_TAGS = 250 # in one header field
      private_constant :MOST_TAGS

      # @param url [String] of Varnish, as this process reaches it
      # @param timeout [Numeric] seconds
      def initialize(url, timeout: 2)
        @requests = Requests.new(url, seconds: timeout)
      end

      # @param tags [Array<String>]
      # @raise [Error]
      def purge(tags)
        @requests.call(patterns(tags).map { |pattern|
          Net::HTTPGenericRequest.new("PURGE", false, true, "/", { "castellan-purge" => pattern })
        })
      end

      private

      # @return [Array<String>] regular expressions of tags between commas
      def patterns(tags)
        tags.each_slice(MOST_TAGS).map { |slice| ",(#{slice.join("|")})," }
      end
    end
  end
end
