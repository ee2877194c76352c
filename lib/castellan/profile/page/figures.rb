# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Formats figures with three significant digits and a unit.
      #
      #   Figures.duration(212_640_000) # => "213 ms"
      #   Figures.bytes(65_976)         # => "66.0 kB"
      #   Figures.count(1_139)          # => "1,139"
      #   Figures.times(41.26)          # => "41 ×"
      #   Figures.share(1, 3)           # => "33 %"
      module Figures
        SIZES = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].freeze
        private_constant :SIZES

        module_function

        # @param nanoseconds [Numeric, nil]
        # @return [String]
        def duration(nanoseconds)
          return "–" unless nanoseconds
          return "0 ms" if nanoseconds.zero?
          return "#{digits(nanoseconds / 1e3)} µs" if nanoseconds.abs < 100_000
          return "#{digits(nanoseconds / 1e6)} ms" if nanoseconds.abs < 10_000_000_000

          "#{digits(nanoseconds / 1e9)} s"
        end

        # @param number [Integer, nil]
        # @return [String] in units of 10^3, 10^6 and 10^9 bytes
        def bytes(number)
          return "–" unless number

          unit, size = SIZES.find { |_, least| number.abs >= least }
          unit ? "#{digits(number / size)} #{unit}" : "#{number} B"
        end

        # @param number [Integer, nil]
        # @return [String] "1,139"
        def count(number) = number ? number.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",") : "–"

        # @param number [Integer]
        # @param noun [String] in the singular
        # @return [String] "1 query", "2 queries"
        def counted(number, noun)
          plural = noun.end_with?("y") ? "#{noun.delete_suffix("y")}ies" : "#{noun}s"
          "#{count(number)} #{number == 1 ? noun : plural}"
        end

        # @param factor [Numeric]
        # @return [String]
        def times(factor) = "#{factor >= 10 ? count(factor.round) : format("%.1f", factor)} ×"

        # @param result [Result]
        # @return [Integer, nil] rows that the queries returned; nil if no driver reported them
        def rows(result)
          known = result.totals[:rows].to_i.positive? || result.queries.empty? || result.queries.any? { |query| query[:rows] }
          result.totals[:rows] if known
        end

        # @return [String] percentage
        def share(part, whole)
          percent = 100.0 * part / whole
          return "–" unless percent.finite?

          percent.positive? && percent < 1 ? "< 1 %" : "#{percent.round} %"
        end

        def digits(value)
          size = value.abs
          return count(value.round) if size >= 100

          format(size >= 10 ? "%.1f" : "%.2f", value)
        end
        private_class_method :digits
      end
    end
  end
end
