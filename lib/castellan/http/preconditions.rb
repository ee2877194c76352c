# frozen_string_literal: true

require "strscan"

module Castellan
  module HTTP
    # Evaluates conditional requests by entity tags (RFC 9110 §13): proceed, 304 or 412.
    #
    #   Preconditions.evaluate(method: "GET", headers: env, etag: "\"v17\"") # => :proceed
    #   Preconditions.evaluate(method: "PATCH", headers: { "if-match" => "\"v16\"" }, etag: "\"v17\"")
    #   # => :precondition_failed
    #
    # Call it before rendering the body, and only if the response would otherwise be 2xx (§13.2.1). An invalid
    # list of tags matches nothing. Dates are ignored, because Castellan sends no Last-Modified.
    module Preconditions
      WITHOUT_CONDITIONS = %w[CONNECT OPTIONS TRACE].freeze
      TAG = %r{(?:W/)?"[!\x23-\x7e\x80-\xff]*"}n
      SEPARATOR = /[ \t,]*(?:,[ \t,]*|\z)/n
      private_constant :WITHOUT_CONDITIONS, :TAG, :SEPARATOR

      module_function

      # Checks If-Match, then If-None-Match, in the order of RFC 9110 §13.2.2.
      #
      # @param method [String] "GET"
      # @param headers [#[]] Rack environment, Hash with lower-case names, or Rails' headers
      # @param etag [String, nil] entity tag of the current representation, with quotes
      # @param exists [Boolean] whether a current representation exists, for `*`
      # @return [Symbol] `:proceed`, `:not_modified` (304; GET and HEAD only) or `:precondition_failed` (412)
      def evaluate(method:, headers:, etag: nil, exists: true)
        return :proceed if WITHOUT_CONDITIONS.include?(method)

        tags = headers["if-match"] || headers["HTTP_IF_MATCH"]
        return :precondition_failed if tags && !any?(tags, etag, exists) { |tag| tag == etag && !tag.start_with?("W/") }

        tags = headers["if-none-match"] || headers["HTTP_IF_NONE_MATCH"]
        return :proceed unless tags && any?(tags, etag, exists) { |tag| tag.delete_prefix("W/") == etag.delete_prefix("W/") }

        reading?(method) ? :not_modified : :precondition_failed
      end

      def any?(list, etag, exists, &same)
        return exists if list == "*" || list.b.strip == "*"
        return false if etag.nil?

        tags = entity_tags(list)
        !tags.nil? && tags.any?(&same)
      end

      # Does not use `split`, because tags may contain commas.
      # @return [Array<String>, nil] nil if the list is invalid
      def entity_tags(list)
        scanner = StringScanner.new(list.b)
        tags = []
        scanner.skip(/[ \t,]+/)
        until scanner.eos?
          tags << (scanner.scan(TAG) || (return nil))
          scanner.skip(SEPARATOR) || (return nil)
        end
        tags
      end

      def reading?(method)
        method == "GET" || method == "HEAD" # rubocop:disable Style/MultipleComparison -- no Array per request
      end
      private_class_method :any?, :entity_tags, :reading?
    end
  end
end
