# frozen_string_literal: true

module Castellan
  module Profile
    # Subscribes the instruments while a profile runs, and in a server for some seconds longer.
    #
    #   Listening.begin
    #   Listening.end(linger_ns: 5_000_000_000)
    #   Listening.rest if Listening.lingering?   # called by unprofiled requests; unsubscribes after those 5 s
    #
    # Subscribing and unsubscribing cost as much as about fifty statements, because ActiveSupport then clears
    # its cache of subscribers per event.
    module Listening
      LOCK = Mutex.new
      private_constant :LOCK
      @until_ns = nil

      class << self
        # Subscribes; call it once at the start of each profile.
        def begin
          Instrument.subscribe
          Instrument.attach
          ViewEvents.subscribe
        end

        # Unsubscribes; call it once at the end of each profile.
        # @param linger_ns [Integer] nanoseconds to stay subscribed for the next profile
        def end(linger_ns: 0)
          linger(linger_ns) if linger_ns.positive?
          Instrument.unsubscribe
          ViewEvents.unsubscribe
        end

        # @return [Boolean] whether the instruments are still subscribed after a profile
        def lingering? = !@until_ns.nil?

        # Unsubscribes if the linger time is over.
        def rest
          ends_ns = @until_ns
          stop if ends_ns && Clock.monotonic_ns > ends_ns
        end

        # Unsubscribes at once, if lingering.
        def stop
          LOCK.synchronize do
            next unless @until_ns

            @until_ns = nil
            Instrument.unsubscribe
            ViewEvents.unsubscribe
          end
        end

        private

        def linger(linger_ns)
          LOCK.synchronize do
            self.begin unless @until_ns
            @until_ns = Clock.monotonic_ns + linger_ns
          end
        end
      end
    end
  end
end
