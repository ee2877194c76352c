# frozen_string_literal: true

module Castellan
  module Serve
    # Chooses the cache header fields of a document, for {Endpoint} and {Controller}.
    #
    #   purged = CacheFields.purged?(purge, document, env, "accept")
    #   CacheFields.of(document, purge, purged)   # => { "cache-control" => "public, s-maxage=600" }
    module CacheFields
      ALWAYS_ASK = HTTP::CacheControl.new

      module_function

      # Excludes documents that may be stale: after a purge, a proxy would fetch and store the stale bytes.
      # @param purge [Purge, nil]
      # @param env [Hash] Rack's environment
      # @param vary [String] the Vary field of the response
      # @param further [Array<String>] further tables on which the response depends
      # @return [Boolean] whether every change of the document causes a purge
      def purged?(purge, document, env, vary, further: [])
        definition = document.rendering.definition
        !purge.nil? && document.public? && !definition.several_tables? && !definition.caching&.stale? &&
          purge.covers?(document.rendering, env, vary, further: further)
      end

      # @param purged [Boolean] see {purged?}
      # @return [Hash{String => String}] header fields
      def of(document, purge, purged)
        purge && !purged && document.public? ? ALWAYS_ASK.shared : document.cache_fields
      end
    end
  end
end
