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
