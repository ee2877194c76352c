# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Remembers invalidations that the store failed to write, and retries them.
    #
    #   lost.write([key], ttl: 300) { mark }   # => false: the store fails
    #   lost.retry_and_include?(key)           # => true: the store still fails, and must not be read
    #
    # Only this process remembers them. Beyond {MOST}, all responses older than the last one are invalid for
    # it.
    class LostInvalidations
      MOST = 2_000 # keys; a URL in a store that processes share has two
      REST_NS = 100_000_000 # between two attempts: FailSafe skips reads after each failure
      Lost = Struct.new(:ttl, :make)
      private_constant :REST_NS, :Lost

      # @param store [Store::FailSafe]
      # @param clock [#now]
      def initialize(store, clock:)
        @store = store
        @clock = clock
        @lost = {}.freeze # replaced, never changed, so that reads need no lock
        @all_until = nil
        @rests_until_ns = 0
        @lock = Mutex.new
        @attempt = Mutex.new
      end

      # Writes the value that invalidates the stored responses of each key, and remembers the keys that fail.
      # @param keys [Array<String>]
      # @param ttl [Numeric, nil] seconds
      # @yieldreturn [String] the value, made anew for each key and attempt
      # @return [Boolean] whether the store wrote all of them
      def write(keys, ttl: nil, &make)
        lost = keys - put(keys.to_h { |key| [key, make] }, ttl)
        note(lost, Lost.new(ttl, make)) if lost.any?
        lost.empty?
      end

      # Retries the lost invalidations; call it before each read of a response.
      # @param key [String]
      # @return [Boolean] whether the invalidation of this key is still lost
      def retry_and_include?(key)
        return false if @lost.empty?

        write_again
        include?(key)
      end

      # @param key [String]
      def include?(key)
        @lost.include?(key)
      end

      # @param stored [StoredResponse]
      # @return [Boolean] whether an invalidation whose key was not remembered may apply to it
      def cover?(stored)
        !@all_until.nil? && stored.received_at - stored.initial_age <= @all_until
      end

      private

      # In one thread at a time.
      def write_again
        return if Clock.monotonic_ns < @rests_until_ns || !(locked = @attempt.try_lock)

        lost = @lost
        lost.group_by { |_, entry| entry.ttl }.each do |ttl, group|
          forget(lost.slice(*put(group.to_h { |key, entry| [key, entry.make] }, ttl)))
        end
        @rests_until_ns = Clock.monotonic_ns + REST_NS
      ensure
        @attempt.unlock if locked
      end

      # @return [Array<String>] the keys that the store wrote
      def put(makers, ttl)
        @store.write_multi(makers.transform_values(&:call), ttl: ttl)
      end

      def note(keys, entry)
        @lock.synchronize do
          all = @lost.merge(keys.to_h { |key| [key, entry] })
          all.size > MOST ? @all_until = @clock.now.to_f : @lost = all.freeze
        end
      end

      # Keeps a key that was lost again meanwhile.
      def forget(written)
        @lock.synchronize { @lost = @lost.reject { |key, entry| entry.equal?(written[key]) }.freeze }
      end
    end
  end
end
