# frozen_string_literal: true

require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "store"

module Castellan
  # Layers in front of what is expensive. A layer is `fetch(key) { bytes }` and sees keys and bytes, never hashes or models.
  #
  #   documents = Castellan::Cache::DocumentLayer.new(store: Castellan::Store::MemoryStore.new, ttl: 43_200)
  #   key = Castellan::Cache::Key.for(["users", "include=roles", version])
  #   documents.fetch(key) { render }   # renders once, however many ask at once
  #
  # What a document depends on stands in its key, the version of its data first of all, so nothing is ever invalidated: a
  # changed document has another key and the old one falls out of the store. A document for one viewer has the viewer in its
  # key, or stands in holes of the bytes ({Envelope}). With CASTELLAN=off every layer is passed by.
  module Cache
  end
end

require_relative "cache/key"
require_relative "cache/envelope"
require_relative "cache/single_flight"
require_relative "cache/document_layer"
