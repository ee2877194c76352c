# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Returns the unparsed strings of a time column.
      # Parsing a time only to format it again dominates a record's cost.
      #
      #   RecordTimes.of(users, "seen_at") { |others| others.map(&:seen_at) }   # => ["2024-01-31 10:00:00", Time, nil, …]
      #
      # Assigned values and values that are not strings come from the block. Only for columns whose strings
      # are times in UTC.
      module RecordTimes
        module_function

        # @param records [Array<ActiveRecord::Base>] records of one class
        # @param column [String]
        # @yieldparam records [Array<ActiveRecord::Base>] records whose times are needed
        # @yieldreturn [Array<Object>] one time for each record
        # @return [Array<String, Object>] one value for each record
        def of(records, column)
          return yield(records) unless texts?(records.first, column)

          assigned = :"#{column}_came_from_user?"
          records.map do |record|
            text = record.read_attribute_before_type_cast(column)
            text.is_a?(String) && !record.public_send(assigned) ? text : yield([record]).first
          end
        end

        # Parsed times are faster to write than their strings; the first record is representative.
        def texts?(record, column)
          record.has_attribute?(column) && record.read_attribute_before_type_cast(column).is_a?(String) &&
            !record.accessed_fields.include?(column)
        end
        private_class_method :texts?
      end
    end
  end
end
