# frozen_string_literal: true

module Castellan
  # Caches up to `limit` values by key and evicts keys that were not read recently. Thread-safe.
  #
  #   plans = Castellan::BoundedCache.new(limit: 100)
  #   plans.fetch("UserResource:users(email)") { compile }   # runs the block once
  #
  # The block runs outside the lock, so it may wait for a connection. If two threads compute one key, both get
  # the first value.
  class BoundedCache
    # Adds {#derive} to a class whose instances are frozen and shared by all threads. Set `@derived` to a
    # {BoundedCache} before `freeze`.
    module Derived
      # Keeps what another part of the library computes from the object, as long as the object lives.
      # @param key [Object] few and fixed: nothing of a request
      # @return what the block returned the first time
      def derive(key, &compute)
        @derived.fetch(key, &compute)
      end
    end

    # @param limit [Integer] at least 2
    def initialize(limit: 100)
      @half = limit / 2
      @recent = {}
      @older = {} # dropped when @recent is full; keys that are read move to @recent
      @lock = Mutex.new
    end

    # @param key [Object] do not mutate it afterwards
    # @yieldreturn [Object] the value; nil and false are not cached
    # @return [Object] the value
    def fetch(key)
      @recent[key] || keep(key, @older[key] || yield)
    end

    # @return [Object, nil] the value
    def [](key)
      @recent[key] || keep(key, @older[key])
    end

    # @return [Array<Object>] the values, least recently read first
    def values
      @lock.synchronize { @older.reject { |key, _| @recent.key?(key) }.values + @recent.values }
    end

    # @return [Integer] the number of keys
    def size
      @lock.synchronize { @recent.merge(@older).size }
    end

    private

    def keep(key, value)
      return value unless value

      @lock.synchronize do
        known = @recent[key] and next known

        value = @older.fetch(key, value)
        @older, @recent = @recent, {} if @recent.size >= @half
        @recent[key] = value
      end
    end
  end
end
