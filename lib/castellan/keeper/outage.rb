# frozen_string_literal: true

module Castellan
  class Keeper
    # Finds the key of the last cached version while the database is down, for `stale_if_error`.
    #
    #   outage.key(freshness, -> { latest }) { |failed| versions.current(dependencies, &failed) }
    #
    # Each process counts the seconds from its first request that could not read a version.
    class Outage
      # @param layer [Cache::DocumentLayer]
      def initialize(layer)
        @layer = layer
        @since_ns = nil
      end

      # @param freshness [Cache::Freshness]
      # @param latest [#call] returns the key without the version
      # @yieldparam failed [Proc, nil] the block of {Versions::ExactVersions#current}
      # @yieldreturn [String, nil] the key with the version
      # @return [String, nil] the key; that of the last cached version if the database is down
      # @raise [StandardError] from the block, if no stale version may be served instead
      def key(freshness, latest)
        return yield unless freshness.stale_if_error

        error = nil
        key = yield(->(failure) { error = failure })
        return last(freshness, latest) if error && Versions.away?(error)

        @since_ns = nil
        key
      rescue StandardError => error
        (last(freshness, latest) if freshness.stale_if_error && Versions.away?(error)) || raise
      end

      private

      def last(freshness, latest)
        now_ns = Clock.monotonic_ns
        @layer.last_key(latest.call, (now_ns - (@since_ns ||= now_ns)) / 1e9, freshness)
      end
    end
  end
end
