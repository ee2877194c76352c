# frozen_string_literal: true

module Castellan
  module Serialize
    # The values of one column as JSON, for the Ruby encoder.
    #
    #   WrittenColumn.call(["a", nil, "\xff"], :text, Text.for(:json))   # => ['"a"', "null", nil]
    #
    # nil stands where a value cannot be written: whoever comes to it writes it by itself and says why.
    module WrittenColumn
      module_function

      # @param values [Array<Object>] the driver's
      # @param coder [Symbol]
      # @param text [Text]
      # @return [Array<String, nil>]
      def call(values, coder, text)
        case coder
        when :text then values.map { |value| value.is_a?(String) ? quoted(value, text) : written(value, coder, text) }
        when :datetime then values.map { |value| value.is_a?(String) ? time(value) : written(value, coder, text) }
        else values.map { |value| written(value, coder, text) }
        end
      end

      def quoted(value, text)
        text.quoted(value)
      rescue Unwritable
        nil
      end

      def time(value)
        "\"#{Timestamp.datetime(value)}\""
      rescue Unwritable
        nil
      end

      def written(value, coder, text)
        return "null" if value.nil?

        Values.append(String.new(encoding: Encoding::UTF_8), coder, value, text)
      rescue Unwritable
        nil
      end
      private_class_method :quoted, :time, :written
    end
  end
end
