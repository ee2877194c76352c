# frozen_string_literal: true

module Castellan
  # Caches up to `limit` values by key and evicts keys that were not read recently. Thread-safe.
  #
  #   plans = Castellan::BoundedCache.new(limit: 100)
  #   plans.fetch("UserResource:users(email)") { compile }   # runs the block once
  #
  # Calls the block outside of the lock, because it may wait for a database connection. If two threads compute
  # the same key, both get the first value.
  class BoundedCache
    # Adds {#derive} to a class whose frozen instances are shared by all threads.
    # Set `@derived` to a {BoundedCache} before `freeze`.
    module Derived
      # Caches a value that another part of the library computes from the object, for the life of the object.
      # @param key [Object] one of few fixed keys; nothing from a request
      # @return the first result of the block
      def derive(key, &compute)
        @derived.fetch(key, &compute)
      end
    end

    # @param limit [Integer] at least 2
    def initialize(limit: 100)
      @half = limit / 2
      @recent = {}
      @older = {} # dropped when @recent is full; a key that is read moves to @recent
      @lock = Mutex.new
    end

    # @param key [Object] must not be mutated afterwards
    # @yieldreturn [Object] the value; nil and false are not cached
    # @return [Object] the value
    def fetch(key)
      @recent[key] || keep(key, @older[key] || yield)
    end

    # @return [Object, nil]
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
