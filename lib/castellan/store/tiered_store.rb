# frozen_string_literal: true

module Castellan
  module Store
    # Reads from a store of this process first, then from one that processes share.
    #
    #   store = TieredStore.new(MemoryStore.new(max_bytesize: 64 * 1024 * 1024), RedisStore.new(url: ENV.fetch("REDIS_URL")))
    #
    # Values of the shared store are kept in the near one, for at most `near_ttl` seconds. Keys of documents contain their
    # version, so a near copy is never stale. Values of fewer than {SMALL} bytes (leases, counters, version tokens) and
    # all conditional writes are those of the shared store alone. Of other values another process may have written a newer
    # one: use a store like this for documents, not for profiles. While the shared store fails, the near one goes on.
    class TieredStore
      SMALL = 128 # bytes

      # @return [Object] the store of this process
      attr_reader :near

      # @param near [MemoryStore]
      # @param far [Object] the store that processes share, see {Store.for}
      # @param near_ttl [Numeric] seconds that a copy is kept in the near store
      # @raise [ArgumentError] for a wrong near_ttl
      # @raise [ConfigurationError] if near is no MemoryStore, or far no store
      def initialize(near, far, near_ttl: 60)
        Store.check_ttl(near_ttl)
        raise ArgumentError, "near_ttl: must be seconds above 0, got nil" if near_ttl.nil?

        unless near.is_a?(MemoryStore)
          raise ConfigurationError, "the first store must be a MemoryStore, got #{Store.shown(near)}; " \
                                    "write TieredStore.new(MemoryStore.new, RedisStore.new(url: …))"
        end

        @near = near
        @far = Store.for(far, "the second store")
        @near_ttl = near_ttl
        freeze
      end

      # @return [Hash{String => String}]
      def read_multi(keys)
        found = @near.read_multi(keys)
        missing = keys.reject { |key| found.key?(key) }
        return found if missing.empty?

        shared = @far.read_multi(missing)
        promote(shared, nil)
        found.merge!(shared)
      end

      # @return [Array<String>] the keys that were written to the shared store
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        return @far.write_multi(entries, ttl: ttl, if_absent: true) if if_absent

        @near.delete_multi(entries.keys)
        promote(entries, ttl)
        written = @far.write_multi(entries, ttl: ttl)
        @near.delete_multi(entries.keys - written) if written.size < entries.size
        written
      end

      def delete_multi(keys)
        @near.delete_multi(keys)
        @far.delete_multi(keys)
      end

      # @return [Integer]
      def increment(key, amount = 1, ttl: nil)
        @near.delete_multi([key])
        @far.increment(key, amount, ttl: ttl)
      end

      # @return [Boolean]
      def compare_and_delete(key, token)
        @far.compare_and_delete(key, token).tap { |deleted| @near.delete_multi([key]) if deleted }
      end

      def supports?(feature)
        @far.supports?(feature)
      end

      private

      def promote(entries, ttl)
        large = entries.select { |_, bytes| bytes.is_a?(String) && bytes.bytesize >= SMALL }
        @near.write_multi(large, ttl: ttl ? [ttl, @near_ttl].min : @near_ttl) unless large.empty?
      end
    end
  end
end
