# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # The times of a column of records: as the driver gave them where that is text and nobody has read them yet, because to make a
      # time of a text only to write it as text costs more than all else of a record.
      #
      #   RecordTimes.of(users, "seen_at") { |others| others.map(&:seen_at) }   # => ["2024-01-31 10:00:00", Time, nil, …]
      #
      # What was assigned, and what is no text, comes from the block. Only for columns whose texts are times in UTC.
      module RecordTimes
        module_function

        # @param records [Array<ActiveRecord::Base>] of one class
        # @param column [String]
        # @yieldparam records [Array<ActiveRecord::Base>] whose times are wanted
        # @yieldreturn [Array<Object>] one for each
        # @return [Array<String, Object>]
        def of(records, column)
          return yield(records) unless texts?(records.first, column)

          assigned = :"#{column}_came_from_user?"
          records.map do |record|
            text = record.read_attribute_before_type_cast(column)
            text.is_a?(String) && !record.public_send(assigned) ? text : yield([record]).first
          end
        end

        # Times that are there are quicker than their texts; the first record stands for all of them.
        def texts?(record, column)
          record.has_attribute?(column) && record.read_attribute_before_type_cast(column).is_a?(String) &&
            !record.accessed_fields.include?(column)
        end
        private_class_method :texts?
      end
    end
  end
end
