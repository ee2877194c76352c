# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Decides whether a stored response may be used for a request (RFC 9111 §4, §5.2.1; RFC 5861).
    module Reuse
      DEMANDS = %w[no-cache max-age max-stale min-fresh].freeze
      private_constant :DEMANDS

      module_function

      # @param request [ClientRequest]
      # @param stored [StoredResponse] of the same URI and matching Vary
      # @param now [Float] seconds since 1970
      # @return [Symbol] :hit; :refresh (serve the stale response and validate it in the background);
      #   otherwise the reason to forward the request: :request (the client demands it), :stale, :bypass (the
      #   request has credentials), :partial (the request is for more than the stored part)
      def decide(request, stored, now)
        return :bypass unless permitted?(request, stored)
        return :partial unless enough?(request, stored)

        remaining = stored.remaining(now)
        control = request.control
        return by_freshness(stored, remaining, nil) if control.equal?(Directives::NONE)
        return :request if control.key?("no-cache") || !acceptable?(control, stored, remaining, now)

        max_stale = control.seconds_or_all("max-stale")
        return :stale if control.key?("max-age") && max_stale.nil? && !remaining.positive? # RFC 9111 §5.2.1.1

        by_freshness(stored, remaining, max_stale)
      end

      # @param (see decide)
      # @return [Boolean] whether the credentials of the request allow the response
      def permitted?(request, stored)
        !(stored.anonymous? && request.identified?) && (stored.shareable? || !request.authorized?)
      end

      # @param request [ClientRequest]
      # @param stored [StoredResponse]
      # @return [Boolean] whether the stored response is complete, or contains the range that is requested (RFC
      #   9111 §3.3), or answered HEAD like this request
      def enough?(request, stored)
        return true unless stored.incomplete?

        request.head? ? stored.head? : !stored.head? && Ranges.within?(request.original, stored)
      end

      # @param (see decide)
      # @param disconnected [Boolean] whether the origin server cannot be reached: a stale response needs no
      #   `stale-if-error` then, unless the client limits its age (RFC 9111 §4.2.4)
      # @return [Boolean] whether the stale response may replace an error of the origin server (RFC 5861 §4)
      def instead_of_error?(request, stored, now, disconnected: false)
        return false if stored.strict? || !permitted?(request, stored) || !enough?(request, stored)
        return true if disconnected && DEMANDS.none? { |name| request.control.key?(name) }

        seconds = [stored.if_error, request.control.seconds("stale-if-error") || 0].max
        seconds.positive? && -stored.remaining(now) <= seconds
      end

      def by_freshness(stored, remaining, max_stale)
        return :stale if stored.no_cache?
        return :hit if remaining.positive?
        return :stale if stored.strict?
        return -remaining <= max_stale ? :hit : :stale if max_stale

        stored.while_revalidate.positive? && -remaining <= stored.while_revalidate ? :refresh : :stale
      end

      # A reload (max-age=0) does not validate an immutable response; only no-cache does (RFC 8246 §2).
      def acceptable?(control, stored, remaining, now)
        max_age = control.seconds("max-age")
        return false if max_age && stored.age(now) > max_age && !(stored.immutable? && remaining.positive?)

        min_fresh = control.seconds("min-fresh")
        min_fresh.nil? || remaining >= min_fresh
      end
      private_class_method :by_freshness, :acceptable?
    end
  end
end
