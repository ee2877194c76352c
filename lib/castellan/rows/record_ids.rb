# frozen_string_literal: true

module Castellan
  module Rows
    # The ids of records: a column, or several joined as Rails joins them in a path.
    #
    #   RecordIds.of(instances, [ada], :id)                  # => [1]
    #   RecordIds.of(instances, [seat], %i[row_id number])   # => ["4_12"]
    #   RecordIds.of(instances, [trip], [:left_at])          # => ["2024-02-01 10:00:00.25 UTC"]
    #
    # A time is written with its fraction, because two records may be of one second.
    module RecordIds
      DELIMITER = "_"
      CLOCK = /\d\d:\d\d:\d\d/
      CLOCK_ALONE = /#{CLOCK}(?!\.)/
      private_constant :CLOCK, :CLOCK_ALONE

      module_function

      # @param column [Symbol, Array<Symbol>]
      # @return [Array<Object>] nil for a record without an id
      def of(instances, records, column)
        return instances.read(records, column).map { |id| id.respond_to?(:strftime) ? text(id) : id } unless column.is_a?(Array)

        column.map { |name| instances.read(records, name) }.transpose.map { |parts| joined(parts) }
      end

      # @param parts [Array<Object>] values of a record
      # @return [String, nil] nil where there is none of them
      def joined(parts)
        parts.map { |part| text(part) }.join(DELIMITER) unless parts.all?(&:nil?)
      end

      # @return [String] the same one with and without ActiveSupport
      def text(value)
        return value.to_s("F") if defined?(::BigDecimal) && value.is_a?(::BigDecimal)
        return value.to_s unless value.respond_to?(:strftime)

        value.to_s.sub(CLOCK_ALONE) { |clock| clock + value.strftime(".%9N").sub(/\.?0+\z/, "") }
      end

      # @param ids [Array<String>] joined
      # @param adapter [Object] knows the types of the columns
      # @return [Array<Array>] the values of those that can be such ids
      def divided(ids, columns, adapter)
        readings = columns.map { |column| reading(column, adapter) }
        ids.filter_map do |id|
          parts = columns.one? ? [text(id)] : id.to_s.split(DELIMITER, -1)
          next unless parts.size == columns.size

          values = readings.zip(parts).flat_map { |reading, part| reading.call(part) }
          values if values.size == columns.size
        end
      end

      # @return [#call] what a part says of the column: one value, or none where it cannot be of it
      def reading(column, adapter)
        return ->(part) { Ids.integers([part]) } if adapter.integer?(column)
        return ->(part) { [part] } if adapter.identifies?(column)

        ->(part) { written_so(adapter.typecast(column, part), part) }
      end

      # What is read into a value is its id only if that is written so: neither the number of an enum, nor 2.50 for 2.5.
      def written_so(value, part)
        return [] if value.nil?

        text(value) == part || same_moment?(value, part) ? [value] : []
      end

      # A time may have been written in another zone.
      def same_moment?(value, part)
        value.respond_to?(:utc) && part.match?(CLOCK)
      end
      private_class_method :reading, :written_so, :same_moment?
    end
  end
end
