# frozen_string_literal: true

module Castellan
  module Plan
    # The requests of one resource that were parsed before, by what was asked as it was spelled, so that looking all of it up in the
    # declaration again is saved. Only shapes (include, fields, representation, format): a request with values of its own is parsed.
    #
    #   known = KnownRequests.new
    #   known.fetch({ include: %i[roles groups] }) { Request.new(definition, include: %i[roles groups]) }   # parses once
    #
    # Bounded, because a client may spell one shape in many ways; what is refused is not known. Thread-safe.
    class KnownRequests
      # What is longer is parsed each time.
      LONGEST = 1_000
      private_constant :LONGEST

      def initialize
        @requests = BoundedCache.new
      end

      # @param asked [Hash{Symbol => Object}] without values of a request
      # @yieldreturn [Request]
      # @return [Request]
      def fetch(asked)
        @requests[asked] || yield.tap { |request| keep(asked, request) }
      end

      # @return [Integer] how many are known
      def size
        @requests.size
      end

      private

      def keep(asked, request)
        @requests.fetch(copy(asked)) { request } if asked.to_s.bytesize <= LONGEST
      end

      # The caller may change what was given.
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
