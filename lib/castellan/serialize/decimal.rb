# frozen_string_literal: true

require "bigdecimal"

module Castellan
  module Serialize
    # Formats decimals like `BigDecimal#to_s("F")`, from their string, so that no digit changes.
    #
    #   Decimal.text("12.50")   # => "12.5"
    #   Decimal.text("12")      # => "12.0"
    #   Decimal.text("1e-3")    # => "0.001"
    module Decimal
      NUMBER = /\A\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?\s*\z/
      private_constant :NUMBER

      module_function

      # @param value [String, Numeric]
      # @return [String]
      # @raise [Unwritable]
      def text(value)
        raise Unwritable.new(:decimal, value) unless value.is_a?(String) || value.is_a?(Numeric)

        source = value.to_s
        parts = NUMBER.match(source)
        return plain(*parts.captures) if parts && !"#{parts[2]}#{parts[3]}".empty?

        raise Unwritable.new(source.match?(/\A-?(nan|inf)/i) ? :finite : :decimal, value)
      end

      def plain(sign, whole, fraction, exponent)
        BigDecimal("#{sign}0#{whole}.#{fraction}0e#{exponent.to_i}").to_s("F")
      end
      private_class_method :plain
    end
  end
end
