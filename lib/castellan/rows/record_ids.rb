# frozen_string_literal: true

module Castellan
  module Rows
    # Builds the ids of records: one column, or several joined as Rails joins them in a path.
    #
    #   RecordIds.of(instances, [ada], :id)                  # => [1]
    #   RecordIds.of(instances, [seat], %i[row_id number])   # => ["4_12"]
    #   RecordIds.of(instances, [trip], [:left_at])          # => ["2024-02-01 10:00:00.25 UTC"]
    #
    # Times include their fraction, because two records may share a second.
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

      # @param parts [Array<Object>] the values of a record's key columns
      # @return [String, nil] nil if all of them are nil
      def joined(parts)
        parts.map { |part| text(part) }.join(DELIMITER) unless parts.all?(&:nil?)
      end

      # @return [String] the same string with and without ActiveSupport
      def text(value)
        return value.to_s("F") if defined?(::BigDecimal) && value.is_a?(::BigDecimal)
        return value.to_s unless value.respond_to?(:strftime)

        value.to_s.sub(CLOCK_ALONE) { |clock| clock + value.strftime(".%9N").sub(/\.?0+\z/, "") }
      end

      # @param ids [Array<String>] joined ids
      # @param adapter [Object] the adapter of the columns
      # @return [Array<Array>] the columns' values for each valid id
      def divided(ids, columns, adapter)
        readings = columns.map { |column| reading(column, adapter) }
        ids.filter_map do |id|
          parts = columns.one? ? [text(id)] : id.to_s.split(DELIMITER, -1)
          next unless parts.size == columns.size

          values = readings.zip(parts).flat_map { |reading, part| reading.call(part) }
          values if values.size == columns.size
        end
      end

      # @return [#call] parses a part of an id to an array of one value, or none if it is invalid
      def reading(column, adapter)
        return ->(part) { Ids.integers([part]) } if adapter.integer?(column)
        return ->(part) { [part] } if adapter.identifies?(column)

        ->(part) { written_so(adapter.typecast(column, part), part) }
      end

      # A value matches only if it is written like the id: an enum's number does not, nor does 2.50 for 2.5.
      def written_so(value, part)
        return [] if value.nil?

        text(value) == part || same_moment?(value, part) ? [value] : []
      end

      # A time matches in any time zone.
      def same_moment?(value, part)
        value.respond_to?(:utc) && part.match?(CLOCK)
      end
      private_class_method :reading, :written_so, :same_moment?
    end
  end
end
