# frozen_string_literal: true

require "strscan"

module Castellan
  module HTTP
    # Conditional requests (RFC 9110 §13): whether to go on, to answer 304, or to answer 412.
    #
    #   Preconditions.evaluate(method: "GET", headers: env, etag: "\"v17\"")                        # => :proceed
    #   Preconditions.evaluate(method: "PATCH", headers: { "if-match" => "\"v16\"" }, etag: "\"v17\"") # => :precondition_failed
    #
    # Call it only when the answer would otherwise be 2xx (§13.2.1), and before the body is made. Dates that cannot be read
    # are ignored; a list of tags that cannot be read matches nothing, which sends a body too many and loses no update.
    # If-Range is not looked at: Castellan answers no ranges.
    module Preconditions
      WITHOUT_CONDITIONS = %w[CONNECT OPTIONS TRACE].freeze
      TAG = %r{(?:W/)?"[!\x23-\x7e\x80-\xff]*"}n
      SEPARATOR = /[ \t,]*(?:,[ \t,]*|\z)/n
      private_constant :WITHOUT_CONDITIONS, :TAG, :SEPARATOR

      module_function

      # In the order of precedence of RFC 9110 §13.2.2.
      #
      # @param method [String] "GET"
      # @param headers [#[]] Rack environment, Hash with names in lower case, or Rails' headers
      # @param etag [String, nil] of the current representation, with quotation marks
      # @param last_modified [Time, nil]
      # @param exists [Boolean] whether there is a current representation, for `*`
      # @return [Symbol] `:proceed`, `:not_modified` (304; GET and HEAD only) or `:precondition_failed` (412)
      def evaluate(method:, headers:, etag: nil, last_modified: nil, exists: true)
        return :proceed if WITHOUT_CONDITIONS.include?(method)
        return :precondition_failed unless unchanged?(headers, etag, last_modified, exists)
        return :proceed if changed?(method, headers, etag, last_modified, exists)

        reading?(method) ? :not_modified : :precondition_failed
      end

      # Steps 1 and 2: If-Match, else If-Unmodified-Since.
      def unchanged?(headers, etag, last_modified, exists)
        if (tags = headers["if-match"] || headers["HTTP_IF_MATCH"])
          any?(tags, etag, exists) { |tag| Validators.same_strongly?(tag, etag) }
        elsif last_modified && (value = headers["if-unmodified-since"] || headers["HTTP_IF_UNMODIFIED_SINCE"])
          date = Timestamp.parse(value)
          date.nil? || last_modified.to_i <= date.to_i
        else
          true
        end
      end

      # Steps 3 and 4: If-None-Match, else If-Modified-Since.
      def changed?(method, headers, etag, last_modified, exists)
        if (tags = headers["if-none-match"] || headers["HTTP_IF_NONE_MATCH"])
          !any?(tags, etag, exists) { |tag| Validators.same_weakly?(tag, etag) }
        elsif last_modified && reading?(method) && (value = headers["if-modified-since"] || headers["HTTP_IF_MODIFIED_SINCE"])
          date = Timestamp.parse(value)
          date.nil? || last_modified.to_i > date.to_i
        else
          true
        end
      end

      def any?(list, etag, exists, &same)
        return exists if list == "*" || list.b.strip == "*"
        return false if etag.nil?

        tags = entity_tags(list)
        !tags.nil? && tags.any?(&same)
      end

      # @return [Array<String>, nil] nil when the list is malformed. A comma may stand inside a tag, so it cannot be split.
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
      private_class_method :unchanged?, :changed?, :any?, :entity_tags, :reading?
    end
  end
end
