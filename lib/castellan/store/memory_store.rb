# frozen_string_literal: true

require_relative "../uninterrupted"

module Castellan
  module Store
    # Stores bytes in this process, up to a limit, as a segmented LRU. The default.
    #
    #   store = MemoryStore.new(max_bytesize: 64 * 1024 * 1024)
    #   store.write_multi({ "a" => "1" }, ttl: 60)
    #   store.read_multi(%w[a b]) # => { "a" => "1" }
    #
    # New values are on probation; values that are read again become protected, up to 80 % of the bytes.
    # Values on probation are evicted first, least recently used first, so a crawler that reads each document
    # once does not evict documents that are read often. A read only marks its value; a write that needs room
    # moves the marked values, as memcached does. Thread-safe; returned Strings are frozen and shared.
    #
    # Each process has its own store, so each computes a document once, and a deletion affects only this
    # process; to share values, use a RedisStore or MemcachedStore.
    class MemoryStore
      include ShortInspect

      # @return [Integer] bytes per entry besides its key and value (two objects, a hash slot); counted in
      #   {#bytesize}
      OVERHEAD = 200

      PROTECTED_SHARE = 0.8
      MOST_MOVED = 100 # marked values by one write, for which other threads wait; the others count as unmarked
      Entry = Struct.new(:bytes, :expires_ns, :bytesize, :decoded, :read)
      private_constant :Entry, :PROTECTED_SHARE, :MOST_MOVED

      # @return [Integer] bytes
      attr_reader :max_bytesize

      # @param max_bytesize [Integer] bytes; an entry larger than an eighth of it is not stored
      # @raise [ConfigurationError] unless it is above 0
      def initialize(max_bytesize: 64 * 1024 * 1024)
        @max_bytesize = OptionCheck.whole(self.class, :max_bytesize, max_bytesize, "64 * 1024 * 1024", unit: "bytes")
        @probation = {} # oldest first, as in @protected
        @protected = {}
        @most_protected = (@max_bytesize * PROTECTED_SHARE).to_i
        @bytesize = @protected_bytesize = 0
        @mutex = Mutex.new
      end

      # @param keys [Array<String>]
      # @return [Hash{String => String}] found values, binary and frozen
      def read_multi(keys)
        found = {}
        synchronize do
          now = Clock.monotonic_ns
          keys.each do |key|
            next unless (entry = @protected[key] || @probation[key])
            next delete(key) if entry.expires_ns && entry.expires_ns <= now

            entry.read = true
            found[key] = entry.bytes
          end
        end
        found
      end

      # Reads one value; decodes it once and keeps the result with the bytes. Takes no lock, because most hits
      # need only this; a value that a write moves meanwhile may be a miss.
      # @param key [String]
      # @yieldparam bytes [String] binary and frozen
      # @yieldreturn [Object, nil] a frozen object; it should share the bytes, because {#bytesize} omits it
      # @return [Object, nil] nil on a miss
      def decoded(key)
        entry = @protected[key] || @probation[key]
        return unless entry && (entry.expires_ns.nil? || entry.expires_ns > Clock.monotonic_ns)

        entry.read = true
        entry.decoded ||= yield(entry.bytes)
      end

      # @param entries [Hash{String => String}]
      # @param ttl [Numeric, nil] seconds
      # @param if_absent [Boolean] keep existing values
      # @return [Array<String>] the keys that were written
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        synchronize do
          now = Clock.monotonic_ns
          expires_ns = expiry(ttl, now)
          entries.filter_map { |key, bytes| key if write(key, bytes, expires_ns, if_absent, now) }
        end
      end

      # @param keys [Array<String>]
      def delete_multi(keys)
        synchronize { keys.each { |key| delete(key) } }
        nil
      end

      # @param ttl [Numeric, nil] seconds, of a new counter; others keep their expiry
      # @return [Integer] new value; the amount if the counter was missing or not a number
      def increment(key, amount = 1, ttl: nil)
        Store.check_ttl(ttl)
        synchronize do
          now = Clock.monotonic_ns
          entry = live(key, now)
          value = (entry ? entry.bytes.to_i : 0) + amount
          write(key, value.to_s, entry ? entry.expires_ns : expiry(ttl, now), false, now)
          value
        end
      end

      # @return [Boolean] whether the value was `token`, and was deleted
      def compare_and_delete(key, token)
        synchronize do
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
        synchronize { @bytesize }
      end

      # @return [Integer] number of entries, including expired ones
      def size
        synchronize { @probation.size + @protected.size }
      end

      # Deletes all entries.
      def clear
        synchronize do
          [@probation, @protected].each(&:clear)
          @bytesize = @protected_bytesize = 0
        end
        nil
      end

      private

      # Without interrupts: one between a change and its bytes would leave them counted for ever, and in the end
      # there would be nothing left to evict.
      def synchronize(&)
        Uninterrupted.call { @mutex.synchronize(&) }
      end

      def expiry(ttl, now) = ttl && (now + (ttl * 1_000_000_000).to_i)

      def live(key, now)
        entry = @protected[key] || @probation[key]
        entry unless entry&.expires_ns&.<=(now)
      end

      def delete(key)
        if (entry = @protected.delete(key)) then @protected_bytesize -= entry.bytesize
        else entry = @probation.delete(key)
        end
        @bytesize -= entry.bytesize if entry
      end

      def write(key, bytes, expires_ns, if_absent, now)
        return false if if_absent && live(key, now)

        delete(key)
        bytesize = bytes.bytesize + key.bytesize + OVERHEAD
        return false if bytesize > @max_bytesize / 8

        moved = 0
        moved = evict(moved) while @bytesize + bytesize > @max_bytesize
        @probation[key] = Entry.new(frozen(bytes), expires_ns, bytesize)
        @bytesize += bytesize
        true
      end

      def frozen(bytes)
        bytes.frozen? && bytes.encoding == Encoding::BINARY ? bytes : bytes.b.freeze
      end

      # Evicts one value, after it has protected the marked values before it. The probation is never empty
      # here: the protected values and a new one fit into the store.
      # @param moved [Integer] number of marked values that the write has moved
      # @return [Integer] the same afterwards
      def evict(moved)
        key, entry = @probation.shift
        while entry.read && moved < MOST_MOVED
          moved = protect(key, entry, moved + 1)
          key, entry = @probation.shift
        end
        @bytesize -= entry.bytesize
        moved
      end

      def protect(key, entry, moved)
        entry.read = false
        @protected[key] = entry
        @protected_bytesize += entry.bytesize
        moved = demote(moved) while @protected_bytesize > @most_protected
        moved
      end

      def demote(moved)
        key, entry = @protected.shift
        if entry.read && moved < MOST_MOVED
          entry.read = false
          @protected[key] = entry
          return moved + 1
        end
        @protected_bytesize -= entry.bytesize
        @probation[key] = entry
        moved
      end
    end
  end
end
