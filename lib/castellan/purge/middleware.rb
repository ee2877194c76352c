# frozen_string_literal: true

module Castellan
  class Purge
    # Purges {HTTPCache}, the middleware, by tags.
    #
    #   Castellan::Purge.new(ActiveRecord::Base, Castellan::Purge::Middleware.new(store))
    class Middleware
      # @param store [Object] the {Store} of the middleware, shared by the processes
      def initialize(store)
        @store = store
      end

      # @param tags [Array<String>]
      # @raise [Error] if the store did not take it
      def purge(tags)
        HTTPCache.purge_tags(*tags, store: @store) or raise Error, "the store of HTTPCache does not answer"
      end
    end
  end
end
