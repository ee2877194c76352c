# frozen_string_literal: true

require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "store"

module Castellan
  # Keeps bytes by key, in front of what is expensive to compute.
  #
  #   documents = Castellan::Cache::DocumentLayer.new(store: Castellan::Store::MemoryStore.new, ttl: 43_200)
  #   key = Castellan::Cache::Key.for(["users", "include=roles", version])
  #   documents.fetch(key) { render }   # renders once, even for concurrent requests
  #
  # The key contains everything the bytes depend on, above all the version of the data. Nothing is ever invalidated: a changed
  # document has another key, and the store drops the old entry. Per-viewer values are holes in the bytes ({Envelope}).
  # With CASTELLAN=off the cache is not used.
  module Cache
  end
end

require_relative "cache/key"
require_relative "cache/envelope"
require_relative "cache/single_flight"
require_relative "cache/document_layer"
