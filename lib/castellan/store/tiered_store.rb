# frozen_string_literal: true

module Castellan
  module Store
    # Reads from a store of this process first, then from one that processes share.
    #
    #   store = TieredStore.new(MemoryStore.new, RedisStore.new(url: ENV.fetch("REDIS_URL")))
    #
    # Copies stay in the near store for at most `near_ttl` seconds, also while the shared store fails. Values
    # of fewer than {SMALL} bytes (leases, counters, version tokens) and conditional writes use only the
    # shared store. Use it for documents, whose keys contain a version: under another key, such as a
    # profile's, a near copy may be older than the value that another process has written.
    class TieredStore
      include ShortInspect

      SMALL = 128 # bytes

      # @return [Object] the store of this process
      attr_reader :near

      # @param near [MemoryStore]
      # @param far [Object] the store that processes share, see {Store.for}
      # @param near_ttl [Numeric] lifetime of a near copy, in seconds
      # @raise [ConfigurationError] if near is not a MemoryStore, far not a store, or near_ttl not above 0
      def initialize(near, far, near_ttl: 60)
        unless near.is_a?(MemoryStore)
          raise ConfigurationError, "the first store must be a MemoryStore, got #{Store.shown(near)}; " \
                                    "write TieredStore.new(MemoryStore.new, RedisStore.new(url: …))"
        end

        @near = near
        @far = Store.for(far, "the second store")
        @near_ttl = OptionCheck.seconds(self.class, :near_ttl, near_ttl, 60)
        freeze
      end

      # @return [Hash{String => String}]
      def read_multi(keys)
        found = @near.read_multi(keys)
        missing = keys.reject { |key| found.key?(key) }
        return found if missing.empty?

        found.merge!(read_shared(missing))
      end

      # Reads past near copies, which may be older than the values of another process.
      # @return [Hash{String => String}]
      def read_shared(keys)
        @far.read_multi(keys).tap { |shared| promote(shared, nil) }
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
