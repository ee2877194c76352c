# frozen_string_literal: true

module Castellan
  module Store
    # A store whose failures are misses. Says so once an outage, not once a request. A server that does not answer costs its timeout
    # each time: so a store that keeps failing is left alone for ten times as long as its last failure took, and at most for five seconds,
    # because what took so long may have been this process. A lease is given back all the same: others wait for it.
    #
    #   store = Castellan::Store::FailSafe.new(Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:1"))
    #   store.read_multi(%w[a]) # => {}, and one line on standard error
    #
    # Only {StoreError} is taken for a miss; a mistake in a store is still an error. Thread-safe.
    class FailSafe
      REST = 10
      LONGEST_REST_NS = 5_000_000_000
      private_constant :REST, :LONGEST_REST_NS

      # @param store [Object] see {Store}
      # @param log [#call, nil] given one line; standard error by default
      def initialize(store, log: nil)
        @store = store
        @log = log || ->(line) { warn(line) }
        @failing = false
        @rests_until_ns = 0
      end

      # @param miss [Object] the answer when the store could not be asked
      def read_multi(keys, miss: {})
        guard(miss) { @store.read_multi(keys) }
      end

      def write_multi(entries, ttl: nil, if_absent: false)
        guard([]) { @store.write_multi(entries, ttl: ttl, if_absent: if_absent) }
      end

      # @return [Boolean, nil] nil when the store could not be asked, so that nobody waits for a lease that nobody holds
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

      # The first failure of an outage was not timed: what works is not to pay for a look at the clock.
      def fail_with(error, started_ns)
        @log.call("castellan: the cache is passed by, because its store fails: #{error.message}") unless @failing
        now = Clock.monotonic_ns
        @rests_until_ns = now + [(now - started_ns) * REST, LONGEST_REST_NS].min if started_ns
        @failing = true
      end
    end
  end
end
