# frozen_string_literal: true

module Castellan
  # Keeps what was computed for a key, for at most `limit` keys. Keys that are in use stay. Safe to share between threads.
  #
  #   plans = Castellan::BoundedCache.new(limit: 100)
  #   plans.fetch("UserResource:users(email)") { compile }   # runs the block once
  #
  # The block runs outside the lock, so it may wait for a connection; where two threads compute one key, the first value stays.
  class BoundedCache
    # @param limit [Integer] at least 2
    def initialize(limit: 100)
      @half = limit / 2
      @recent = {}
      @older = {} # leaves as a whole when @recent is full, but for the keys that were read meanwhile
      @lock = Mutex.new
    end

    # @param key [Object] not to be changed afterwards
    # @yieldreturn the value; nil and false are not kept
    # @return the value
    def fetch(key)
      @recent[key] || keep(key, @older[key] || yield)
    end

    # @return the value, or nil
    def [](key)
      @recent[key] || keep(key, @older[key])
    end

    # @return [Integer] how many keys there are
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
