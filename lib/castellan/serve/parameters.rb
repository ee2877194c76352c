# frozen_string_literal: true

require "rack/utils"

module Castellan
  module Serve
    # Parses a query string into a request, and builds pagination links that keep the rest of it. Frozen.
    #
    #   parameters = Parameters.new("include=company&page[size]=20", MailLogResource.definition)
    #   parameters.request                                   # => Plan::Request
    #   parameters.links("/mail-logs?include=company&", 50)  # => { "first" => "/mail-logs?…&page…", … }
    #
    # Rack parses the string, with its limits on the number of parameters (CVE-2025-46727) and on nesting.
    class Parameters
      # Bytes; longer query strings are refused with 414.
      MAX_BYTESIZE = 8_192
      # Errors of the parser; their names depend on the version of Rack.
      UNREADABLE = [*%i[ParameterTypeError InvalidParameterError QueryLimitError ParamsTooDeepError].filter_map do |name|
        Rack::QueryParser.const_get(name) if Rack::QueryParser.const_defined?(name)
      end, RangeError, ArgumentError].freeze
      private_constant :UNREADABLE

      # @return [Plan::Request]
      # @return [String] the query of a pagination link without the page: "?" or "?include=company&"
      attr_reader :request, :rest

      # @param text [String] a query string; may be empty
      # @param definition [Resource::Definition]
      # @param fixed [Hash] parameters that are the same in every request; clients may not send them
      # @param own [Hash{String => Object}] the application's own parameters by name
      # @raise [BadRequest] for a query that is too long or malformed, and for unknown or fixed parameters
      def initialize(text, definition, fixed = {}, own = {})
        query = text.empty? ? {} : known!(Parameters.read(text), own)
        refuse_fixed(query, fixed)
        @request = Plan::Request.parse(definition, query, **fixed)
        rest = query.except("page")
        @rest = rest.empty? ? "?" : "?#{Rack::Utils.build_nested_query(rest)}&"
        freeze
      end

      # Builds pagination links (JSON:API 1.1, "Pagination"). Without a total, `last` is missing, and every
      # full page has `next`, so the next page may be empty.
      # @param base [String] the path and {#rest}
      # @param total [Integer, nil] the number of all records, if they are counted
      # @param full [Boolean] whether the page is full
      # @return [Hash{String => String, nil}] URLs by link name; nil if the page does not exist
      def links(base, total, full = false) # rubocop:disable Style/OptionalBooleanParameter
        number, size = request.page
        last = [(total + size - 1) / size, 1].max if total
        before = last ? [number, last + 1].min - 1 : number - 1
        following = number + 1 if last ? number < last : full
        pages = { "first" => 1, "prev" => (before if before.positive?), "next" => following }
        pages["last"] = last if last
        pages.transform_values { |page| "#{base}page%5Bnumber%5D=#{page}&page%5Bsize%5D=#{size}" if page }
      end

      # @param text [String] a query string
      # @return [Hash{String => Object}]
      # @raise [BadRequest] for a query that is too long or malformed, and for repeated parameters
      def self.read(text)
        if text.bytesize > MAX_BYTESIZE
          raise BadRequest.new("the query is longer than #{MAX_BYTESIZE} bytes", status: 414, title: "URI too long")
        end

        Rack::Utils.parse_nested_query(text).tap { refuse_repeated(text) }
      rescue *UNREADABLE => error
        # Rack's error about nesting has no message.
        text = error.message
        text = "it is nested deeper than #{Rack::Utils.param_depth_limit} levels" if text == error.class.name
        raise BadRequest.new("the query cannot be read: #{ClientText.shown(text, 200)}", title: "Invalid query")
      end

      # Some clients write lists as repeated parameters, of which Rack keeps the last.
      def self.refuse_repeated(text)
        return unless text.include?("&")

        repeated = Rack::Utils.parse_query(text).find { |name, values| values.is_a?(Array) && !name.include?("[]") }
        return unless repeated

        name = Plan::Parameter.shown(repeated.first)
        lists = "; divide several values by commas" if name.match?(/\A(?:include|fields|sort|filter)\b/)
        Plan::Parameter.refuse(name, "#{name} may be written only once#{lists}")
      end
      private_class_method :refuse_repeated

      private

      # JSON:API 1.1, "Query Parameters": a server must answer 400 to a parameter that it does not support.
      def known!(query, own)
        unknown = query.keys.find { |name| !Plan::Request::FAMILIES.include?(name) && !own.key?(name) } or return query

        name = Plan::Parameter.shown(unknown)
        Plan::Parameter.refuse(name, "#{name.inspect} is not known#{Nearest.hint(name, Plan::Request::FAMILIES + own.keys)}")
      end

      # JSON:API 1.1, "Inclusion of Related Resources": an endpoint that does not support `include` answers
      # 400 to it.
      def refuse_fixed(query, fixed)
        family = query.keys.find { |name| fixed.key?(name.to_sym) } or return

        Plan::Parameter.refuse(family, "#{family} cannot be used here: the server chooses it")
      end
    end
  end
end
