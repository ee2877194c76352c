# frozen_string_literal: true

module Castellan
  module Plan
    # Caches the parsed requests of one resource by their parameters. Requests that filter, sort or page are parsed each time.
    #
    #   known = KnownRequests.new
    #   known.fetch({ include: %i[roles groups] }) { Request.new(definition, include: %i[roles groups]) }   # parses once
    #
    # Bounded, because a client may spell one shape in many ways. Refused requests are not cached.
    class KnownRequests
      # Longer parameters are parsed each time, in bytes.
      LONGEST = 1_000
      private_constant :LONGEST

      def initialize
        @requests = BoundedCache.new
      end

      # @param asked [Hash{Symbol => Object}] without values of a request
      # @yieldreturn [Request]
      # @return [Request]
      def fetch(asked) = @requests[asked] || yield.tap { |request| keep(asked, request) }

      # @return [Integer] the number of cached requests
      def size = @requests.size

      private

      def keep(asked, request)
        @requests.fetch(copy(asked)) { request } if asked.to_s.bytesize <= LONGEST
      end

      # The caller may change the parameters later.
      def copy(value)
        case value
        when Hash then value.to_h { |name, inner| [copy(name), copy(inner)] }.freeze
        when Array then value.map { |inner| copy(inner) }.freeze
        when String then -value
        else value
        end
      end
    end
  end
end
