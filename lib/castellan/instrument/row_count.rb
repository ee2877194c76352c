# frozen_string_literal: true

module Castellan
  module Instrument
    # Counts the rows that a statement returned, from the driver's result. Rows changed by a write do not
    # count, like in ActiveRecord's `row_count`; rows of its RETURNING do.
    #
    #   RowCount.call(connection.exec("SELECT * FROM users"))   # => 162
    #   RowCount.call(statement)                                # => nil: rows are read later, their number is unknown
    module RowCount
      # Used instead of this module where the driver's result does not hold the rows.
      UNKNOWN = ->(_result) {}

      # @param result [Object] of a driver, or of ActiveRecord
      # @return [Integer, nil]
      def self.call(result)
        case result
        when Array then result.size
        else
          return result.length if defined?(ActiveRecord::Result) && result.is_a?(ActiveRecord::Result)

          result.ntuples if defined?(PG::Result) && result.is_a?(PG::Result) && !result.cleared?
        end
      end
    end
  end
end
