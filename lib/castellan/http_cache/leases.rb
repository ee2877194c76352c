# frozen_string_literal: true

require "securerandom"

module Castellan
  class HTTPCache
    # Lets one of several processes forward a request, while the others wait until its response is stored.
    #
    #   leases.hold(request) { |state| fetch unless state == :unstored }
    #
    # A lease ends with the response, stored or not, and expires after some seconds. A response that was not
    # stored leaves a note in the store, so that for some seconds no process waits for the next one.
    class Leases
      PREFIX = "castellan:http:1:lease:"
      PAUSE_SECONDS = 0.02
      UNSTORED = "unstored"
      private_constant :PREFIX, :PAUSE_SECONDS, :UNSTORED

      # @param store [Store::FailSafe] that supports leases
      # @param seconds [Numeric] the duration of a lease, and the longest wait of other processes
      def initialize(store, seconds:)
        @store = store
        @seconds = seconds
      end

      # @param request [ClientRequest]
      # @param wait [Boolean] false: return nil, without yielding, if another process holds the lease
      # @yieldparam state [Symbol] :first; :waited after the lease of another process; :unstored if the last
      #   response was not stored
      # @return [Object, nil] the value of the block
      def hold(request, wait: true)
        lease = key(request)
        token = SecureRandom.hex(8)
        taken = @store.acquire(lease, token, ttl: @seconds)
        return (yield wait_for(lease) if wait) if taken == false # nil: the store fails

        begin
          yield :first
        ensure
          @store.compare_and_delete(lease, token) if taken
        end
      end

      # Notes that the response to this request was not stored.
      # @param request [ClientRequest]
      # @param seconds [Numeric] how long the note lasts
      def note_unstored(request, seconds)
        @store.write_multi({ key(request) => UNSTORED }, ttl: seconds)
      end

      private

      def key(request)
        Cache::Key.for([PREFIX, request.group])
      end

      def wait_for(lease)
        until_ns = Clock.monotonic_ns + (@seconds * 1_000_000_000)
        while (holder = @store.read_multi([lease])[lease]) && Clock.monotonic_ns < until_ns
          return :unstored if holder == UNSTORED

          sleep PAUSE_SECONDS
        end
        :waited
      end
    end
  end
end
