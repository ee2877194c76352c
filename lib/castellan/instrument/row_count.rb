# frozen_string_literal: true

module Castellan
  module Instrument
    # How many rows a statement gave back, by what its driver answered. A write gives back none but by RETURNING: rows that it changed
    # are no rows, as in ActiveRecord's `row_count`.
    #
    #   RowCount.call(connection.exec("SELECT * FROM users"))   # => 162
    #   RowCount.call(SQLite3::Statement)                       # => nil: its rows are read later, and nobody knows how many
    #
    # Never reads a row and makes no object.
    module RowCount
      # Instead of this module, where what a driver answers is not what the database gave back.
      UNKNOWN = ->(_answer) {}

      # For a result set of sqlite3, which knows no number: counts what is read.
      module Counted
        def castellan_count = @castellan_count || 0

        def next = counted(super)

        def next_hash = counted(super)

        private

        def counted(row)
          @castellan_count = castellan_count + 1 if row
          row
        end
      end

      # @param answer [Object] of a driver, or of ActiveRecord
      # @return [Integer, nil]
      def self.call(answer)
        case answer
        when Array then answer.size
        when Counted then answer.castellan_count
        else
          return answer.length if defined?(ActiveRecord::Result) && answer.is_a?(ActiveRecord::Result)

          answer.ntuples if defined?(PG::Result) && answer.is_a?(PG::Result) && !answer.cleared?
        end
      end
    end
  end
end
