# frozen_string_literal: true

module Castellan
  module Rows
    # Counts rows and reads one of their columns, from arrays or a PG::Result in text format.
    #
    #   ColumnValues.ids(rows, 0)      # => [1, 2]      without nil; integers if the column is of integers
    #   ColumnValues.column(rows, 1)   # => ["a", nil]  as the driver returns them
    #   ColumnValues.count(rows)       # => 2
    module ColumnValues
      extend self

      INTEGERS = [20, 21, 23].freeze # int8, int2 and int4 in pg_type
      MAPS = {} # rubocop:disable Style/MutableConstant -- few: by the widths of rows and the places of ids in them
      MOST_MAPS = 500
      private_constant :INTEGERS, :MAPS, :MOST_MAPS

      # @return [Array<Integer, String>]
      def ids(rows, position) = column(rows, position, integers: true).compact

      # @return [Array]
      def column(rows, position, integers: false)
        return rows.map { |row| row[position] } if rows.is_a?(Array)
        return rows.column_values(position) unless integers && INTEGERS.include?(rows.ftype(position))

        as_integers(rows, position)
      end

      # @return [Integer] the number of rows
      def count(rows) = rows.is_a?(Array) ? rows.size : rows.ntuples

      private

      # Lets the driver decode the ids, which allocates no strings; later reads return text again.
      def as_integers(rows, position)
        texts = rows.type_map
        rows.type_map = MAPS[[rows.nfields, position]] || map_of(rows.nfields, position)
        rows.column_values(position)
      ensure
        rows.type_map = texts
      end

      def map_of(width, position)
        map = PG::TypeMapByColumn.new(Array.new(width) { |index| PG::TextDecoder::Integer.new if index == position })
        MAPS.size < MOST_MAPS ? MAPS[[width, position].freeze] = map : map
      end
    end
  end
end
