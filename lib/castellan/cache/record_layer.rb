# frozen_string_literal: true

module Castellan
  module Cache
    # Keeps the bytes of single records, so that an edit of one costs the rendering of one.
    #
    #   records = RecordLayer.new(store: store, ttl: 43_200)
    #   records.fetch_many(keys) { |missing| render(missing) } # => an Array of bytes, in the order of the keys
    #
    # One read and at most one write of the store, and one call of the block with all that is missing. There is no single
    # flight: two who miss the same record at once both render it. Slower than a warm DocumentLayer, and survives a change.
    class RecordLayer
      # @param store [Object] see {Store}
      # @param ttl [Numeric, nil] seconds that bytes are kept
      # @param log [#call, nil] told of a failing store
      def initialize(store:, ttl: nil, log: nil)
        Store.check_ttl(ttl)
        @store = Store::FailSafe.new(store, log: log)
        @ttl = ttl
        freeze
      end

      # @param keys [Array<String>]
      # @yieldparam missing [Array<String>] keys, each once, in their order; not called when none is missing
      # @yieldreturn [Hash{String => String}] bytes by key; a key may be left out (the record is gone)
      # @return [Array<String, nil>] as many as keys, nil for a key that the block left out
      def fetch_many(keys)
        return yield(keys.uniq).values_at(*keys) if Castellan.off?

        found = look(keys)
        return found.values_at(*keys) if found.size == keys.size

        missing = keys.uniq - found.keys
        return found.values_at(*keys) if missing.empty?

        made = yield(missing)
        @store.write_multi(made, ttl: @ttl) if made.any?
        found.merge(made).values_at(*keys)
      end

      private

      # For who records it is a hit, a miss, or a part of the records.
      def look(keys)
        recording = Recording.current
        return @store.read_multi(keys) unless recording&.watches_spans?

        started_ns = Clock.monotonic_ns
        found = @store.read_multi(keys)
        outcome = if found.empty? then :miss
                  else found.size < keys.uniq.size ? :part : :hit
                  end
        recording.cache(:record, outcome, started_ns, Clock.monotonic_ns - started_ns)
        found
      end
    end
  end
end
