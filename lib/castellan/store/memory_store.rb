# frozen_string_literal: true

module Castellan
  module Store
    # Stores bytes in this process, up to a limit; evicts the least recently used (LRU). The default.
    #
    #   store = MemoryStore.new(max_bytesize: 64 * 1024 * 1024)
    #   store.write_multi({ "a" => "1" }, ttl: 60)
    #   store.read_multi(%w[a b]) # => { "a" => "1" }
    #
    # Thread-safe; returned Strings are frozen and shared. Each process has its own store, so each computes a
    # document once, and a deletion affects only this process; to share values, use a RedisStore or
    # MemcachedStore.
    class MemoryStore
      # @return [Integer] bytes per entry besides its key and value (two objects, a hash slot); counted in
      #   {#bytesize}
      OVERHEAD = 200

      Entry = Struct.new(:bytes, :expires_ns, :bytesize)
      private_constant :Entry

      # @return [Integer] bytes
      attr_reader :max_bytesize

      # @param max_bytesize [Integer] bytes; an entry larger than an eighth of it is not stored
      def initialize(max_bytesize: 64 * 1024 * 1024)
        @max_bytesize = Integer(max_bytesize)
        raise ConfigurationError, "max_bytesize: must be above 0, got #{max_bytesize.inspect}" unless @max_bytesize.positive?

        @entries = {} # least recently used first
        @bytesize = 0
        @mutex = Mutex.new
      end

      # @param keys [Array<String>]
      # @return [Hash{String => String}] found values, binary and frozen
      def read_multi(keys)
        found = {}
        @mutex.synchronize do
          now = Clock.monotonic_ns
          keys.each do |key|
            next unless (entry = @entries.delete(key))
            next @bytesize -= entry.bytesize if entry.expires_ns && entry.expires_ns <= now

            @entries[key] = entry
            found[key] = entry.bytes
          end
        end
        found
      end

      # @param entries [Hash{String => String}]
      # @param ttl [Numeric, nil] seconds
      # @param if_absent [Boolean] keep existing values
      # @return [Array<String>] the keys that were written
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        @mutex.synchronize do
          now = Clock.monotonic_ns
          expires_ns = ttl && (now + (ttl * 1_000_000_000).to_i)
          entries.filter_map { |key, bytes| key if write(key, bytes, expires_ns, if_absent, now) }
        end
      end

      # @param keys [Array<String>]
      def delete_multi(keys)
        @mutex.synchronize { keys.each { |key| delete(key) } }
        nil
      end

      # @return [Integer] new value; 1 if the counter was missing or not a number. Keeps the expiry
      def increment(key)
        @mutex.synchronize do
          now = Clock.monotonic_ns
          entry = live(key, now)
          value = entry ? entry.bytes.to_i + 1 : 1
          write(key, value.to_s, entry&.expires_ns, false, now)
          value
        end
      end

      # @return [Boolean] whether the value was `token`, and was deleted
      def compare_and_delete(key, token)
        @mutex.synchronize do
          entry = live(key, Clock.monotonic_ns)
          return false unless entry && entry.bytes == token.b

          delete(key)
          true
        end
      end

      # @param feature [Symbol]
      def supports?(feature)
        feature == :lease
      end

      # @return [Integer] bytes in use, with keys and OVERHEAD
      def bytesize
        @mutex.synchronize { @bytesize }
      end

      # @return [Integer] number of entries, including expired ones
      def size
        @mutex.synchronize { @entries.size }
      end

      # Deletes all entries.
      def clear
        @mutex.synchronize do
          @entries.clear
          @bytesize = 0
        end
        nil
      end

      private

      def live(key, now)
        entry = @entries[key]
        entry unless entry&.expires_ns&.<=(now)
      end

      def delete(key)
        entry = @entries.delete(key)
        @bytesize -= entry.bytesize if entry
      end

      def write(key, bytes, expires_ns, if_absent, now)
        return false if if_absent && live(key, now)

        delete(key)
        bytesize = bytes.bytesize + key.bytesize + OVERHEAD
        return false if bytesize > @max_bytesize / 8

        @entries[key] = Entry.new(frozen(bytes), expires_ns, bytesize)
        @bytesize += bytesize
        evict while @bytesize > @max_bytesize
        true
      end

      def frozen(bytes)
        bytes.frozen? && bytes.encoding == Encoding::BINARY ? bytes : bytes.b.freeze
      end

      def evict
        @bytesize -= @entries.shift.last.bytesize
      end
    end
  end
end
