# frozen_string_literal: true

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
        return positional(parts) if parts && !"#{parts[2]}#{parts[3]}".empty?

        raise Unwritable.new(source.match?(/\A-?(nan|inf)/i) ? :finite : :decimal, value)
      end

      def positional(parts)
        whole, fraction = shift(parts[2].to_s, parts[3].to_s, parts[4].to_i)
        whole = whole.sub(/\A0+(?=\d)/, "")
        fraction = fraction.sub(/0+\z/, "")
        "#{"-" if parts[1] == "-"}#{whole.empty? ? "0" : whole}.#{fraction.empty? ? "0" : fraction}"
      end

      def shift(whole, fraction, exponent)
        return [whole, fraction] if exponent.zero?

        digits = whole + fraction
        point = whole.size + exponent
        return ["", "0" * -point + digits] if point <= 0

        digits = digits.ljust(point, "0")
        [digits[0, point], digits[point..]]
      end

      private_class_method :positional, :shift
    end
  end
end
