# frozen_string_literal: true

module Castellan
  module Plan
    # Keeps what was made under the keys used last; the one not used for longest leaves first. Bounded, because shapes of
    # requests come from clients. Thread-safe; what two threads make at once is kept once.
    #
    #   plans = BoundedCache.new(limit: 100)
    #   plans.fetch("UserResource:users(email)") { compile }   # compiles once
    class BoundedCache
      # @param limit [Integer]
      def initialize(limit: 100)
        @limit = limit
        @values = {}
        @lock = Mutex.new
      end

      # @param key [String]
      # @yieldreturn what to keep; nil is not kept
      # @return what is kept, or what the block makes
      def fetch(key)
        @lock.synchronize { touch(key) } || keep(key, yield)
      end

      # @param key [Object]
      # @return what is kept, or nil
      def [](key)
        @lock.synchronize { touch(key) }
      end

      # @return [Integer] how many are kept
      def size
        @lock.synchronize { @values.size }
      end

      private

      def touch(key)
        value = @values.delete(key) or return
        @values[key] = value
      end

      def keep(key, value)
        return if value.nil?

        @lock.synchronize do
          next touch(key) if @values.key?(key)

          @values.shift if @values.size >= @limit
          @values[key] = value
        end
      end
    end
  end
end
