# frozen_string_literal: true

require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "store"

module Castellan
  # Caches the results of expensive computations as bytes by key.
  #
  #   documents = Castellan::Cache::DocumentLayer.new(store: Castellan::Store::MemoryStore.new)
  #   key = Castellan::Cache::Key.for(["users", "include=roles", version])
  #   documents.fetch(key) { render }   # renders once, even for concurrent requests
  #
  # A key contains everything that the bytes depend on, including the version of the data. Entries therefore
  # need no invalidation: a changed document has another key. Per-viewer values are placeholders in the bytes
  # ({Envelope}). Set `CASTELLAN=off` to disable the cache.
  module Cache
  end
end

require_relative "cache/key"
require_relative "cache/envelope"
require_relative "cache/single_flight"
require_relative "cache/freshness"
require_relative "cache/entry"
require_relative "cache/events"
require_relative "cache/compression"
require_relative "cache/spliced_gzip"
require_relative "cache/document_layer"
