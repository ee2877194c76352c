# frozen_string_literal: true

require_relative "requests"

module Castellan
  class Purge
    # Removes documents from Varnish by their tags: with a ban, or with the vmod xkey.
    #
    #   Varnish.new("http://127.0.0.1:6081").purge(Tags.digests(%w[posts/7 posts.title]))
    #
    # Needs the configuration that `castellan proxy varnish` prints, without or with `--xkey`; it reads one of the
    # two fields.
    class Varnish
      MOST_TAGS = 250 # in one header field
      private_constant :MOST_TAGS

      # @param url [String] of Varnish, as seen from this process
      # @param timeout [Numeric] seconds
      # @raise [ConfigurationError] if an option is invalid
      def initialize(url, timeout: 2)
        @requests = Requests.new(url, seconds: timeout)
      end

      # @param tags [Array<String>] hexadecimal digits, which need no escaping in a pattern
      # @raise [Error] if Varnish does not accept the purge
      def purge(tags)
        @requests.call(tags.each_slice(MOST_TAGS).map { |slice|
          Net::HTTPGenericRequest.new("PURGE", false, true, "/", fields(slice))
        })
      end

      private

      # @return [Hash{String => String}] a regular expression that matches tags between commas, and the tags
      def fields(tags)
        { "castellan-purge" => ",(#{tags.join("|")}),", "xkey-purge" => tags.join(" ") }
      end
    end
  end
end
