# frozen_string_literal: true

module Castellan
  module Serve
    # Chooses the header fields about caches of a document, for {Endpoint} and {Controller}.
    #
    #   purged = CacheFields.purged?(purge, document, env, "accept")
    #   CacheFields.of(document, purge, purged)   # => { "cache-control" => "public, s-maxage=600" }
    module CacheFields
      ALWAYS_ASK = HTTP::CacheControl.new
      private_constant :ALWAYS_ASK

      module_function

      # Proxies must not keep bytes that may be stale: they would ask for them after the purge, and keep them.
      # @param purge [Purge, nil]
      # @param env [Hash] Rack's environment
      # @param vary [String] the Vary field of the response
      # @return [Boolean] whether the purge notices every change of the document
      def purged?(purge, document, env, vary)
        definition = document.rendering.definition
        !purge.nil? && document.public? && !definition.several_tables? && !definition.caching&.stale? &&
          purge.covers?(document.rendering, env, vary)
      end

      # @param purged [Boolean] see {purged?}
      # @return [Hash{String => String}]
      def of(document, purge, purged)
        purge && !purged && document.public? ? ALWAYS_ASK.shared : document.cache_fields
      end
    end
  end
end
