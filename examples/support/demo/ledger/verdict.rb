# frozen_string_literal: true

module Castellan
  module Demo
    class Ledger
      # Compares a step with the previous one.
      #
      #   Verdict.of(row, before: previous, tolerance: 0.05) # => "better"
      #   Verdict.factor(row, previous)                      # => 2.98, times as fast
      module Verdict
        MORE_IS_BETTER = %i[requests_per_s availability].freeze
        private_constant :MORE_IS_BETTER

        module_function

        # @param before [Row, nil]
        # @return [String, nil] "wrong", "better", "same" or "worse"; nil if there is nothing to compare
        def of(row, before:, tolerance:)
          return "wrong" if row.wrong?
          return unless row.step?

          factor = before && factor(row, before) or return
          return "better" if factor > 1 + tolerance

          factor < 1 / (1 + tolerance) ? "worse" : "same"
        end

        # @param on [Symbol, nil] the field to compare; by default the leading figure
        # @return [Float, nil] above 1 if `row` is better; nil if a figure is missing or not positive
        def factor(row, other, on: nil)
          name = on || row.leading
          mine = name && row[name]
          theirs = name && other[name]
          return unless mine && theirs && mine.positive? && theirs.positive?

          MORE_IS_BETTER.include?(name) ? mine.fdiv(theirs) : theirs.fdiv(mine)
        end
      end
    end
  end
end
