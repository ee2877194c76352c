# frozen_string_literal: true

module Castellan
  module Cache
    # Notifies of reads and writes of a layer: the current recording (a profile), and where ActiveSupport is loaded,
    # the subscribers of "cache.castellan".
    #
    #   ActiveSupport::Notifications.subscribe("cache.castellan") do |event|
    #     event.payload   # => { layer: :document, outcome: :hit, bytes: 52_017, age: 12.5, milliseconds: 0.02 }
    #   end
    #
    # Outcomes: `:hit`, `:miss`; then `:fill` (computed and kept), `:wait` (another thread or process computed it),
    # `:stale` (served after its end, as declared), `:refresh` (computed again before its end), `:error` (served
    # stale, because the computation raised), `:pass` (computed, and not kept). A key is never part of an event.
    module Events
      NAME = "cache.castellan"

      module_function

      # @return [Boolean] whether anybody listens; nothing is measured otherwise
      def wanted?
        Recording.current&.watches_spans? || subscribed?
      end

      # @param layer [Symbol] :document, :form, :fetch or :http
      # @param outcome [Symbol]
      # @param started_ns [Integer] monotonic
      # @param bytes [Integer, nil] how many
      # @param age [Float, nil] seconds since the bytes were made
      def publish(layer, outcome, started_ns, bytes: nil, age: nil)
        ended_ns = Clock.monotonic_ns
        Recording.current&.notify(:cache, layer, outcome, started_ns, ended_ns - started_ns, bytes, age)
        return unless subscribed?

        taken = (ended_ns - started_ns) / 1_000_000.0
        ::ActiveSupport::Notifications.instrument(NAME,
                                                  { layer: layer, outcome: outcome, bytes: bytes, age: age, milliseconds: taken }.compact)
      end

      # @return [Boolean] whether "cache.castellan" has a subscriber
      def subscribed?
        defined?(::ActiveSupport::Notifications) && ::ActiveSupport::Notifications.notifier.listening?(NAME)
      end
    end
  end
end
