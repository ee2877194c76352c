# frozen_string_literal: true

require "securerandom"

module Castellan
  module Cache
    # Keeps whole documents, and computes each once when several requests ask for it at the same time.
    #
    #   documents = DocumentLayer.new(store: store, ttl: 43_200)
    #   documents.fetch(key) { Envelope.new(body: render).dump } # => bytes
    #
    # Within a process, other threads wait for the one that computes. Between processes, a store that supports leases lets one
    # process compute while the others poll for its bytes; when the lease ends, they compute as well. A store that fails is a
    # miss. Do not call {#fetch} inside a database transaction that other requests wait for.
    class DocumentLayer
      PAUSE_SECONDS = 0.02
      private_constant :PAUSE_SECONDS

      # @param store [Object] see {Store}
      # @param ttl [Numeric, nil] seconds that bytes are kept
      # @param lease_ttl [Numeric] seconds until other threads and processes stop waiting and compute themselves
      # @param log [#call, nil] receives a line when the store fails
      def initialize(store:, ttl: nil, lease_ttl: 10, log: nil)
        Store.check_ttl(ttl)
        Store.check_ttl(lease_ttl)
        @store = Store::FailSafe.new(store, log: log)
        @ttl = ttl
        @lease_ttl = lease_ttl
        @leases = store.supports?(:lease) && !store.is_a?(Store::MemoryStore) # processes do not share a MemoryStore
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
      # @return [String, nil] the kept bytes
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

      # Polls until another process has written the bytes or its lease has ended.
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
