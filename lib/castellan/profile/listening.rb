# frozen_string_literal: true

module Castellan
  module Profile
    # Has the instruments listen while something is profiled, and a little longer where a server is: to begin and to end to listen costs as
    # much as some fifty statements, because ActiveSupport looks anew for who wants which event.
    #
    #   Listening.begin
    #   Listening.end(linger_ns: 5_000_000_000)
    #   Listening.rest if Listening.lingering?   # what a request that is not profiled does: after these 5 s it ends
    module Listening
      LOCK = Mutex.new
      private_constant :LOCK
      @until_ns = nil

      class << self
        # A profile begins.
        def begin
          Instrument.subscribe
          Instrument.attach
          ViewEvents.subscribe
        end

        # A profile has ended.
        # @param linger_ns [Integer] how long to listen on for the next one
        def end(linger_ns: 0)
          linger(linger_ns) if linger_ns.positive?
          Instrument.unsubscribe
          ViewEvents.unsubscribe
        end

        # @return [Boolean] whether it listens on after a profile
        def lingering? = !@until_ns.nil?

        # Ends to listen on, when it is time.
        def rest
          ends_ns = @until_ns
          stop if ends_ns && Clock.monotonic_ns > ends_ns
        end

        # Ends to listen on at once.
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
