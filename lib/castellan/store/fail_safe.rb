# frozen_string_literal: true

module Castellan
  module Store
    # Wraps a store so that its failures become misses, logged once per outage. Thread-safe.
    #
    #   store = Castellan::Store::FailSafe.new(Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:1"))
    #   store.read_multi(%w[a]) # => {}, and one line on standard error
    #
    # An unreachable server costs its timeout per call, so a store that failed is skipped for ten times the
    # duration of the failure, at most five seconds (the slow part may have been this process). Then one
    # thread tries it again, while the others go on skipping it. Leases are released even then, because other
    # processes wait for them. Only {StoreError} is rescued; other errors are bugs of the store.
    class FailSafe
      include ShortInspect

      REST = 10
      LONGEST_REST_NS = 5_000_000_000
      OUTAGE_NS = 10_000_000_000 # a failure with the same message within this time belongs to the same outage
      private_constant :REST, :LONGEST_REST_NS, :OUTAGE_NS

      # @param store [Object] see {Store.for}
      # @return [FailSafe] the store itself if it already is one
      def self.for(store, log: nil)
        store.is_a?(self) ? store : new(store, log: log)
      end

      # @param store [Object] see {Store.for}
      # @param log [#call, nil] called with a line; default standard error
      # @param effect [String] what a failure causes, for that line
      # @param name [String] of the option, for errors
      # @raise [ConfigurationError] if it is not a store
      def initialize(store, log: nil, effect: "the cache is skipped", name: "store:")
        @store = Store.for(store, name)
        @near = @store.near if @store.is_a?(TieredStore)
        @memory = [@store, @near].grep(MemoryStore).first
        @log = log || ->(line) { warn(line) }
        @effect = effect
        @failing = false
        @rests_until_ns = 0
        @failures = {} # message => when it occurred last
        @lock = Mutex.new
        @trial = Mutex.new
      end

      # @return [MemoryStore, nil] the store in this process, if there is one
      attr_reader :memory

      # @param miss [Object] result if the store fails; a {TieredStore} still returns near copies
      def read_multi(keys, miss: {})
        near = @near.read_multi(keys) if @near && @failing
        return near if near&.size == keys.size # the shared store was not read, so it may still fail

        guard(nil) { @store.read_multi(keys) } || (@near ? @near.read_multi(keys) : miss)
      end

      # Reads what processes share, past the near copies of a {TieredStore}; while that fails, the near copies.
      def read_shared(keys)
        @near ? guard(nil) { @store.read_shared(keys) } || @near.read_multi(keys) : read_multi(keys)
      end

      # Reads and decodes one value; only a {MemoryStore} keeps the result, see {MemoryStore#decoded}.
      # @param key [String]
      # @yieldparam bytes [String]
      # @return [Object, nil] nil on a miss or failure
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

      # @return [Integer, nil] nil if the store fails
      def increment(key, amount = 1, ttl: nil)
        guard(nil) { @store.increment(key, amount, ttl: ttl) }
      end

      # @return [Boolean, nil] nil if the store fails, so that the caller does not wait for a lease that is
      #   not held
      def acquire(key, token, ttl:)
        guard(nil) do
          @store.write_multi({ key => token }, ttl: ttl, if_absent: true).any? || holds?(key, token)
        rescue StoreError
          release(key, token) # its answer may only be late
          raise
        end
      end

      def compare_and_delete(key, token)
        attempt(false) { @store.compare_and_delete(key, token) }
      end

      def supports?(feature)
        @store.supports?(feature)
      end

      # @return [Boolean] whether its leases exclude other processes
      def shares_leases?
        @store.supports?(:lease) && !@store.is_a?(MemoryStore)
      end

      private

      def guard(miss, &use)
        return attempt(miss, &use) unless @failing
        return miss if Clock.monotonic_ns < @rests_until_ns || !@trial.try_lock

        begin
          attempt(miss, &use)
        ensure
          @trial.unlock
        end
      end

      def attempt(miss)
        started_ns = Clock.monotonic_ns
        answer = yield
        @failing = false
        answer
      rescue StoreError => error
        begins = fail_with(error.message, started_ns)
        @log.call("castellan: #{@effect}, because its store fails: #{error.message}") if begins
        miss
      end

      # redis-client and dalli write again after a lost connection; the second write then fails because of the first.
      def holds?(key, token)
        @store.read_multi([key])[key] == token
      end

      # Logs nothing, because the failure of the write is logged.
      def release(key, token)
        @store.compare_and_delete(key, token)
      rescue StoreError
        false
      end

      # A full Redis rejects writes but still serves reads, and a cluster without one node fails in several ways: that is
      # one outage.
      # @return [Boolean] whether an outage begins
      def fail_with(failure, started_ns)
        now_ns = Clock.monotonic_ns
        @lock.synchronize do
          # "MOVED 11851 …" of a cluster and "… @ io_write - path" of a full disk differ for each key.
          failure = failure.b.sub(/ @ \w+ - .*/m, "").tr("0-9", "")
          @failures.delete_if { |_, failed_ns| now_ns - failed_ns >= OUTAGE_NS }
          begins = !@failing && !@failures.key?(failure)
          @failing = true
          @failures[failure] = now_ns
          @rests_until_ns = now_ns + [(now_ns - started_ns) * REST, LONGEST_REST_NS].min
          begins
        end
      end
    end
  end
end
