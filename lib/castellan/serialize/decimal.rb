# frozen_string_literal: true

module Castellan
  module Serialize
    # Formats decimals like `BigDecimal#to_s("F")`, from their string, so that no digit changes. Without BigDecimal, which
    # Ruby 3.4 does not give to applications that have neither ActiveRecord nor Sequel in their bundle.
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
        whole, fraction = moved("#{whole}#{fraction}", whole.size + exponent.to_i) if exponent
        whole = whole.sub(/\A0+/, "") if whole.start_with?("0")
        fraction = fraction.sub(/0+\z/, "") if fraction&.end_with?("0")
        "#{sign if sign == "-"}#{whole.empty? ? "0" : whole}.#{fraction.nil? || fraction.empty? ? "0" : fraction}"
      end

      # @return [Array(String, String)] the digits before the point and after it
      def moved(digits, point)
        point.positive? ? [digits[0, point].ljust(point, "0"), digits[point..]] : ["", ("0" * -point) + digits]
      end
      private_class_method :plain, :moved
    end
  end
end
