# frozen_string_literal: true

require "bigdecimal"
require "date"
require "json"
require "time"

module Castellan
  module Rows
    # Encodes a Ruby value as JSON.
    # Writes decimals and times as the encoder does, and other values like ActiveSupport if it is loaded. A
    # local time on a machine whose time zone is UTC is written as UTC.
    #
    #   JSONValue.text(BigDecimal("12.50"))             # => "\"12.5\""
    #   JSONValue.text(Time.utc(2024, 1, 31, 10))       # => "\"2024-01-31T10:00:00.000Z\""
    module JSONValue
      FRACTION = 3
      private_constant :FRACTION

      module_function

      # @return [String]
      def text(value)
        return ::ActiveSupport::JSON.encode(in_utc(value)) if defined?(::ActiveSupport::JSON)

        JSON.generate(plain(value))
      end

      def in_utc(value)
        case value
        when Hash then value.transform_values { |inner| in_utc(inner) }
        when Array then value.map { |inner| in_utc(inner) }
        else value.instance_of?(Time) && value.zone == "UTC" ? value.getutc : value
        end
      end

      def plain(value)
        case value
        when BigDecimal then value.finite? ? value.to_s("F") : nil
        when DateTime then plain(value.to_time)
        when Time then (value.zone == "UTC" ? value.getutc : value).xmlschema(FRACTION)
        when Date then value.iso8601
        when Hash then value.to_h { |key, inner| [key.to_s, plain(inner)] }
        when Array then value.map { |inner| plain(inner) }
        else value
        end
      end
    end
  end
end
