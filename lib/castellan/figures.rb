# frozen_string_literal: true

module Castellan
  # Formats figures with three significant digits and a unit, and computes medians.
  #
  #   Figures.duration(212_640_000)    # => "213 ms"
  #   Figures.bytes(65_976)            # => "66.0 kB"
  #   Figures.number(7795.4)           # => "7,795"
  #   Figures.counted(2, "query")      # => "2 queries"
  #   Figures.times(0.0503)            # => "0.05 ×"
  #
  # Formats nil as "–".
  module Figures
    NOTHING = "–"
    SIZES = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].freeze
    private_constant :NOTHING, :SIZES

    module_function

    # @param nanoseconds [Numeric, nil]
    # @return [String] with the unit µs, ms or s
    def duration(nanoseconds)
      return NOTHING unless nanoseconds
      return "0 ms" if nanoseconds.zero?
      return "#{number(nanoseconds / 1e3)} µs" if nanoseconds.abs < 100_000
      return "#{number(nanoseconds / 1e6)} ms" if nanoseconds.abs < 10_000_000_000

      "#{number(nanoseconds / 1e9)} s"
    end

    # @param nanoseconds [Numeric, nil]
    # @return [Float, nil] milliseconds with three decimals, for JSON
    def milliseconds(nanoseconds) = nanoseconds && (nanoseconds / 1e6).round(3)

    # @param size [Integer, nil]
    # @return [String] with the unit B, kB, MB or GB (powers of 1,000)
    def bytes(size)
      return NOTHING unless size

      unit, least = SIZES.find { |_, limit| size.abs >= limit }
      unit ? "#{number(size / least)} #{unit}" : "#{size} B"
    end

    # @param value [Numeric, nil]
    # @return [String] three significant digits; all digits of an Integer
    def number(value)
      return count(value&.round) if !value.is_a?(Float) || value.abs >= 99.95

      format(value.abs >= 9.995 ? "%.1f" : "%.2f", value)
    end

    # @param number [Integer, nil]
    # @return [String] "1,139"
    def count(number) = number ? number.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",") : NOTHING

    # @param number [Integer]
    # @param noun [String] singular
    # @return [String] "1 query", "2 queries"
    def counted(number, noun)
      plural = noun.end_with?("y") ? "#{noun.delete_suffix("y")}ies" : "#{noun}s"
      "#{count(number)} #{number == 1 ? noun : plural}"
    end

    # @param factor [Numeric]
    # @return [String]
    def times(factor)
      return "#{count(factor.round)} ×" if factor >= 9.95

      format(factor >= 0.95 ? "%.1f ×" : "%.2f ×", factor)
    end

    # @param value [Numeric] percent
    # @return [String] two decimals, without trailing zeros
    def percent(value) = "#{format("%.2f", value).sub(/\.?0+\z/, "")} %"

    # @return [String] the part as a percentage of the whole, without decimals
    def share(part, whole)
      percent = 100.0 * part / whole
      return NOTHING unless percent.finite?

      percent.positive? && percent < 1 ? "< 1 %" : "#{percent.round} %"
    end

    # @param values [Array<Numeric>]
    # @return [Numeric] the middle value, or the mean of the two middle values
    def median(values)
      sorted = values.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end
  end
end
