# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Evaluates a client's conditions against a stored response (RFC 9111 §4.3.2, RFC 9110 §13).
    #
    #   ClientConditions.not_modified?(env, stored)   # => true: 304
    #   ClientConditions.range?(env, stored)          # => true: Range counts, because If-Range matches
    #
    # If-Match and If-Unmodified-Since apply to the origin server, not to a cache.
    module ClientConditions
      NAMES = %w[HTTP_IF_NONE_MATCH HTTP_IF_MODIFIED_SINCE].freeze

      module_function

      # @param env [Hash] Rack environment
      # @param stored [StoredResponse] of status 2xx
      def not_modified?(env, stored)
        tags = env["HTTP_IF_NONE_MATCH"]
        return none_match?(tags, stored.etag) if tags

        since = HTTPDate.parse(env["HTTP_IF_MODIFIED_SINCE"]) or return false
        return true if env["HTTP_IF_MODIFIED_SINCE"] == stored.last_modified

        (HTTPDate.parse(stored.last_modified) || stored.date) <= since
      end

      # @return [Boolean] whether the Range field counts (RFC 9110 §13.1.5): strong comparison
      def range?(env, stored)
        condition = env["HTTP_IF_RANGE"] or return true
        condition = HeaderFields.bytes(condition).strip
        return condition == stored.etag if condition.start_with?('"')

        date = HTTPDate.parse(condition) or return false
        date == HTTPDate.parse(stored.last_modified) && stored.date - date >= 1
      end

      def none_match?(tags, etag)
        # Fast path: most clients send one tag, which compressing proxies make weak.
        return true if tags == etag || (tags.start_with?("W/") && tags.delete_prefix("W/") == etag)

        HTTP::Preconditions.evaluate(method: "GET", headers: { "if-none-match" => tags }, etag: etag) == :not_modified
      end
      private_class_method :none_match?
    end
  end
end
