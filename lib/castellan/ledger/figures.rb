# frozen_string_literal: true

module Castellan
  class Ledger
    # Formats figures with three or four significant digits, and sizes with a unit.
    #
    #   Figures.number(7795.4) # => "7,795"
    #   Figures.number(3.904)  # => "3.90"
    #   Figures.bytes(436_700_000) # => "436.7 MB"
    #   Figures.times(41.26)   # => "41 ×"
    #   Figures.times(0.0503)  # => "0.05 ×"
    module Figures
      UNITS = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].freeze
      private_constant :UNITS

      module_function

      # @return [String]
      def number(value)
        return delimited(value.round) if value.is_a?(Integer) || value.abs >= 100

        format(value.abs >= 10 ? "%.1f" : "%.2f", value)
      end

      # @return [String] 10^3, 10^6 and 10^9 bytes
      def bytes(value)
        unit, size = UNITS.find { |_, size| value >= size }
        return "#{delimited(value)} B" unless unit

        amount = value / size
        "#{format(amount >= 100 && unit == "kB" ? "%.0f" : "%.1f", amount)} #{unit}"
      end

      # @return [String] two decimals, without trailing zeros
      def percent(value)
        "#{format("%.2f", value).sub(/\.?0+\z/, "")} %"
      end

      # @return [String]
      def times(factor)
        return "#{delimited(factor.round)} ×" if factor >= 10

        format(factor >= 1 ? "%.1f ×" : "%.2f ×", factor)
      end

      # @return [String] "1,139"
      def delimited(value)
        value.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
      end
    end
  end
end
