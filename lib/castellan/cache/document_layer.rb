# frozen_string_literal: true

require "securerandom"

module Castellan
  module Cache
    # Keeps whole documents; each is computed once, however many ask at once.
    #
    #   documents = DocumentLayer.new(store: store, ttl: 43_200)
    #   documents.fetch(key) { Envelope.new(body: render, etag: etag).dump } # => bytes
    #
    # Within a process, those who come while it is computed wait for it. Between processes, a store that supports leases lets
    # one compute and the others look for its answer until the lease ends; then they compute. A store that fails is a miss.
    # Bytes are only ever given for their own key: put the version of the data, and the viewer of a private document, into
    # it. Do not fetch while you hold a database transaction open that others wait for.
    class DocumentLayer
      PAUSE_SECONDS = 0.02
      private_constant :PAUSE_SECONDS

      # @param store [Object] see {Store}
      # @param ttl [Numeric, nil] seconds that bytes are kept
      # @param lease_ttl [Numeric] seconds that one may compute before others do as well, in this and in other processes
      # @param log [#call, nil] told of a failing store
      def initialize(store:, ttl: nil, lease_ttl: 10, log: nil)
        Store.check_ttl(ttl)
        Store.check_ttl(lease_ttl)
        @store = Store::FailSafe.new(store, log: log)
        @ttl = ttl
        @lease_ttl = lease_ttl
        @leases = store.supports?(:lease) && !store.is_a?(Store::MemoryStore) # a MemoryStore's processes are strangers
        @flights = SingleFlight.new(timeout: lease_ttl)
        freeze
      end

      # @param key [String]
      # @yieldreturn [String, nil] the bytes; nil is not kept
      # @return [String, nil] the bytes
      def fetch(key, &block)
        return yield if Castellan.off?

        Recording.look(:document) { read(key) } || @flights.run(key) { read(key) || compute(key, &block) }
      end

      # @param key [String]
      # @return [String, nil] the bytes, if they are there
      def read(key)
        @store.read_multi([key])[key] unless Castellan.off?
      end

      private

      def compute(key, &block)
        return write(key, yield) unless @leases

        lease = "#{key}:lease"
        token = SecureRandom.hex(8)
        case @store.acquire(lease, token, ttl: @lease_ttl)
        when nil then yield
        when false then await(key, lease) || write(key, yield)
        else holding(lease, token) { read(key) || write(key, block.call) }
        end
      end

      def write(key, bytes)
        @store.write_multi({ key => bytes }, ttl: @ttl) if bytes
        bytes
      end

      def holding(lease, token)
        yield
      ensure
        @store.compare_and_delete(lease, token)
      end

      # Looks for another process' answer, until it is there or the lease is gone without one.
      def await(key, lease)
        deadline = Clock.monotonic_ns + (@lease_ttl * 1_000_000_000).to_i
        while Clock.monotonic_ns < deadline
          sleep PAUSE_SECONDS
          found = @store.read_multi([key, lease])
          return found[key] if found.key?(key)
          return read(key) unless found.key?(lease)
        end
      end
    end
  end
end
