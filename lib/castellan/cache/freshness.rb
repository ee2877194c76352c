# frozen_string_literal: true

module Castellan
  module Cache
    # Declares how long cached bytes may be served. Frozen; all times are in seconds.
    #
    #   Freshness.new(expires_in: 300, stale_while_revalidate: 10, stale_if_error: 600)
    #
    # Bytes that expired, or whose version was replaced, are served for `stale_while_revalidate` more seconds
    # while new ones are computed, and for `stale_if_error` seconds if that raises. Both are named after the
    # directives of RFC 5861. Both are nil by default, so nothing stale is served.
    class Freshness
      # @return [Numeric, nil] nil: as long as the store keeps the bytes
      # @return [Numeric, nil] seconds after that, while new bytes are computed
      # @return [Numeric, nil] seconds after that, if the computation raises
      attr_reader :expires_in, :stale_while_revalidate, :stale_if_error

      # @raise [ArgumentError] for anything but positive seconds or nil
      def initialize(expires_in: nil, stale_while_revalidate: nil, stale_if_error: nil)
        @expires_in = seconds(:expires_in, expires_in)
        @stale_while_revalidate = seconds(:stale_while_revalidate, stale_while_revalidate)
        @stale_if_error = seconds(:stale_if_error, stale_if_error)
        @longest = [@stale_while_revalidate || 0, @stale_if_error || 0].max
        freeze
      end

      # @return [Boolean] whether bytes may be served after they expired
      def stale? = @longest.positive?

      # @return [Float, nil] how long a store must keep the bytes
      def ttl = @expires_in && (@expires_in + @longest)

      private

      def seconds(name, value)
        return if value.nil?

        seconds = value.to_f if value.respond_to?(:to_f) && !value.is_a?(String)
        return seconds if seconds&.positive? && seconds.finite?

        raise ArgumentError, "#{name}: must be seconds above 0 or nil, got #{value.inspect[0, 60]}"
      end
    end
  end
end
