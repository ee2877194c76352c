# frozen_string_literal: true

module Castellan
  module Store
    # Wraps a store so that its failures become misses, logged once per outage. Thread-safe.
    #
    #   store = Castellan::Store::FailSafe.new(Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:1"))
    #   store.read_multi(%w[a]) # => {}, and one line on standard error
    #
    # An unreachable server costs its timeout per call, so a store that keeps failing is skipped for ten times
    # the duration of its last failure, at most five seconds (the slow part may have been this process).
    # Leases are released even then, because other processes wait for them. Only {StoreError} is rescued;
    # other errors are bugs of the store.
    class FailSafe
      REST = 10
      LONGEST_REST_NS = 5_000_000_000
      private_constant :REST, :LONGEST_REST_NS

      # @param store [Object] see {Store}
      # @param log [#call, nil] called with a line; default standard error
      def initialize(store, log: nil)
        @store = store
        @near = store.near if store.is_a?(TieredStore)
        @memory = [store, @near].grep(MemoryStore).first
        @log = log || ->(line) { warn(line) }
        @failing = false
        @rests_until_ns = 0
      end

      # @param miss [Object] result if the store fails; a {TieredStore} still returns what its near store has
      def read_multi(keys, miss: {})
        found = guard(nil) { @store.read_multi(keys) } and return found

        @near ? @near.read_multi(keys) : miss
      end

      # Reads one value, see {MemoryStore#decoded}; what another store has is decoded each time.
      # @param key [String]
      # @yieldparam bytes [String]
      # @return [Object, nil]
      def decoded(key, &decode)
        found = @memory&.decoded(key, &decode) and return found

        bytes = read_multi([key])[key] unless @memory.equal?(@store)
        bytes && yield(bytes)
      end

      def write_multi(entries, ttl: nil, if_absent: false)
        guard([]) { @store.write_multi(entries, ttl: ttl, if_absent: if_absent) }
      end

      def delete_multi(keys)
        guard(nil) { @store.delete_multi(keys) }
      end

      # @return [Boolean, nil] nil if the store fails, so that the caller does not wait for a lease that is
      #   not held
      def acquire(key, token, ttl:)
        guard(nil) { @store.write_multi({ key => token }, ttl: ttl, if_absent: true).any? }
      end

      def compare_and_delete(key, token)
        guard(false, resting: false) { @store.compare_and_delete(key, token) }
      end

      def supports?(feature)
        @store.supports?(feature)
      end

      private

      def guard(miss, resting: true)
        started_ns = Clock.monotonic_ns if @failing
        return miss if resting && started_ns && started_ns < @rests_until_ns

        answer = yield
        recover if @failing
        answer
      rescue StoreError => error
        fail_with(error, started_ns)
        miss
      end

      def recover
        @failing = false
        @rests_until_ns = 0
      end

      # The first failure of an outage is not timed, so that working stores do not read the clock.
      def fail_with(error, started_ns)
        @log.call("castellan: the cache is passed by, because its store fails: #{error.message}") unless @failing
        now = Clock.monotonic_ns
        @rests_until_ns = now + [(now - started_ns) * REST, LONGEST_REST_NS].min if started_ns
        @failing = true
      end
    end
  end
end
