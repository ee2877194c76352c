# frozen_string_literal: true

require_relative "../profile"

module Castellan
  module Doctor
    # Formats numbers for the report.
    #
    #   Figures.whole(1234567)            # => "1,234,567"
    #   Figures.counted(2, "query")       # => "2 queries"
    #   Figures.milliseconds(7_795_400_000)   # => "7,795.4 ms"
    #   Figures.bytes(35_000_000)         # => "35.0 MB"
    module Figures
      module_function

      # @return [String] with thousands separators
      def whole(number) = Profile::Page::Figures.count(number)

      # @param noun [String] singular
      # @return [String]
      def counted(number, noun) = Profile::Page::Figures.counted(number, noun)

      # @param nanoseconds [Integer]
      # @return [String]
      def milliseconds(nanoseconds)
        units, tenth = format(nanoseconds < 10_000_000 ? "%.2f" : "%.1f", nanoseconds / 1e6).split(".")
        "#{whole(units)}.#{tenth} ms"
      end

      # @param number [Integer]
      # @return [String] in bytes, kB or MB
      def bytes(number)
        case number
        when 0...10_000 then "#{whole(number)} bytes"
        when 10_000...1_000_000 then format("%.1f kB", number / 1e3)
        else format("%.1f MB", number / 1e6)
        end
      end
    end
  end
end
