# frozen_string_literal: true

require "rack/utils"

module Castellan
  module Serve
    # Parses a query string into parameters by family. A malformed one raises {BadRequest}.
    #
    #   QueryString.parse("include=roles&page[size]=20")  # => { "include" => "roles", "page" => { "size" => "20" } }
    #
    # Rack parses, with its limits on the number of parameters (CVE-2025-46727) and on nesting.
    module QueryString
      # Longer query strings are answered with 414, in bytes.
      MAX_BYTESIZE = 8_192
      EMPTY = {}.freeze
      # The errors of the installed version of Rack.
      UNREADABLE = [*%i[ParameterTypeError InvalidParameterError QueryLimitError ParamsTooDeepError].filter_map do |name|
        Rack::QueryParser.const_get(name) if Rack::QueryParser.const_defined?(name)
      end, RangeError, ArgumentError].freeze
      private_constant :EMPTY, :UNREADABLE

      module_function

      # @param text [String, nil]
      # @return [Hash{String => String, Hash, Array}]
      # @raise [BadRequest] for a query that is too long, malformed, or has unknown parameters
      def parse(text)
        return EMPTY if text.nil? || text.empty?

        text.bytesize > MAX_BYTESIZE ? too_long : known!(read(text))
      end

      def too_long
        raise BadRequest.new("the query is longer than #{MAX_BYTESIZE} bytes", status: 414, title: "URI too long")
      end

      def read(text)
        Rack::Utils.parse_nested_query(text)
      rescue *UNREADABLE => error
        raise BadRequest.new("the query cannot be read: #{error.message.scrub("?")[0, 200]}", title: "Invalid query")
      end

      # JSON:API 1.1, "Query Parameters": a server must answer 400 to a parameter that it does not know.
      def known!(parameters)
        unknown = parameters.keys.find { |name| !Plan::Request::FAMILIES.include?(name) } or return parameters

        name = Plan::Parameter.shown(unknown)
        Plan::Parameter.refuse(name, "#{name.inspect} is not known#{Nearest.hint(name, Plan::Request::FAMILIES)}")
      end
      private_class_method :too_long, :read, :known!
    end
  end
end
