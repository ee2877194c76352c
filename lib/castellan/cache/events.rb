# frozen_string_literal: true

module Castellan
  module Cache
    # Publishes a layer's reads and writes to the current profile and to ActiveSupport::Notifications.
    #
    #   ActiveSupport::Notifications.subscribe("cache.castellan") do |event|
    #     event.payload
    #     # => { layer: :document, outcome: :hit, bytes: 52_017, age: 12.5, milliseconds: 0.02 }
    #   end
    #
    # Outcomes: `:hit`, `:miss`; then `:fill` (computed and stored), `:wait` (computed by another thread or
    # process), `:stale` (served after it expired, as declared), `:refresh` (recomputed before it expires),
    # `:error` (served stale, because the computation raised), `:pass` (computed, not stored). Events never
    # contain keys.
    module Events
      NAME = "cache.castellan"

      module_function

      # @return [Boolean] whether a profile or a subscriber needs events; otherwise nothing is measured
      def wanted?
        Recording.current&.watches_spans? || subscribed?
      end

      # @param layer [Symbol] :document, :form, :validator, :fetch or :http
      # @param outcome [Symbol]
      # @param started_ns [Integer] monotonic
      # @param bytes [Integer, nil] number of bytes
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
        notifications = @notifications ||= (::ActiveSupport::Notifications if defined?(::ActiveSupport::Notifications))
        !notifications.nil? && notifications.notifier.listening?(NAME)
      end
    end
  end
end
