# frozen_string_literal: true

module Castellan
  module Rows
    # The ids of records: a column, or several joined as Rails joins them in a path.
    #
    #   RecordIds.of(instances, [ada], :id)                  # => [1]
    #   RecordIds.of(instances, [seat], %i[row_id number])   # => ["4_12"]
    module RecordIds
      DELIMITER = "_"

      module_function

      # @param column [Symbol, Array<Symbol>]
      # @return [Array<Object>]
      def of(instances, records, column)
        return instances.read(records, column) unless column.is_a?(Array)

        column.map { |name| instances.read(records, name) }.transpose.map { |parts| parts.join(DELIMITER) }
      end

      # @param ids [Array<String>] joined
      # @param adapter [Object] knows the types of the columns
      # @return [Array<Array>] the values of those that can be such ids
      def divided(ids, columns, adapter)
        ids.filter_map do |id|
          parts = columns.one? ? [id.to_s] : id.to_s.split(DELIMITER, -1)
          next unless parts.size == columns.size

          values = columns.zip(parts).flat_map { |column, part| adapter.integer?(column) ? Ids.integers([part]) : [part] }
          values if values.size == columns.size
        end
      end
    end
  end
end
