# frozen_string_literal: true

module Castellan
  class Purge
    # Purges documents from the middleware {HTTPCache} by their tags.
    #
    #   Castellan::Purge.new(ActiveRecord::Base, Castellan::Purge::Middleware.new(store))
    class Middleware
      # @param store [Object] the {Store} of the middleware, which the processes share
      # @raise [ConfigurationError] unless it is a store
      def initialize(store)
        @store = Store.for(store, "the store of #{self.class}")
      end

      # @param tags [Array<String>]
      # @raise [Error] if the store fails
      def purge(tags)
        HTTPCache.purge_tags(*tags, store: @store) or raise Error, "the store of HTTPCache does not answer"
      end
    end
  end
end
