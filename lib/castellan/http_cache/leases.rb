# frozen_string_literal: true

require "securerandom"

module Castellan
  class HTTPCache
    # Lets one of several processes forward a request, while the others wait until its response is stored.
    #
    #   leases.hold(request.group) { |state| fetch unless state == :unstored }
    #
    # A lease ends with the response, stored or not, and expires after some seconds. A response that was not
    # stored leaves a note in the store, so that for some seconds no process waits for the next one.
    class Leases
      PREFIX = "castellan:http:1:lease:"
      PAUSE_SECONDS = 0.02
      PAUSES = 10 # between two looks at the response
      UNSTORED = "unstored"
      private_constant :PREFIX, :PAUSE_SECONDS, :PAUSES, :UNSTORED

      # @param store [Store::FailSafe] that supports leases
      # @param seconds [Numeric] the duration of a lease, and the longest wait of other processes
      def initialize(store, seconds:)
        @store = store
        @seconds = seconds
      end

      # @param group [String] equal for requests that wait for each other
      # @param wait [Boolean] false: return nil, without yielding, if another process holds the lease
      # @param stored [#call, nil] whether the response is stored, even though the lease has not ended: a failing
      #   store may have kept it
      # @yieldparam state [Symbol] :first; :waited after the lease of another process; :unstored if the last
      #   response was not stored
      # @return [Object, nil] the value of the block
      def hold(group, wait: true, stored: nil)
        lease = key(group)
        token = SecureRandom.hex(8)
        taken = :unknown
        taken = @store.acquire(lease, token, ttl: @seconds)
        return (yield wait_for(lease, stored) if wait) if taken == false # nil: the store fails

        yield :first
      ensure
        @store.compare_and_delete(lease, token) if taken
      end

      # Notes that the response to a request of this group was not stored.
      # @param group [String]
      # @param seconds [Numeric] how long the note lasts
      def note_unstored(group, seconds)
        @store.write_multi({ key(group) => UNSTORED }, ttl: seconds)
      end

      private

      def key(group)
        Cache::Key.for([PREFIX, group])
      end

      def wait_for(lease, stored)
        until_ns = Clock.monotonic_ns + (@seconds * 1_000_000_000)
        pauses = 0
        while (holder = @store.read_multi([lease])[lease]) && Clock.monotonic_ns < until_ns
          return :unstored if holder == UNSTORED

          sleep PAUSE_SECONDS
          break if ((pauses += 1) % PAUSES).zero? && stored&.call
        end
        :waited
      end
    end
  end
end
