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
        return values.map { |value| value.is_a?(String) ? quoted(value, text) : one(value, coder, text) } if coder == :text

        values.map { |value| one(value, coder, text) }
      end

      # @return [String, nil]
      def one(value, coder, text)
        value.nil? ? "null" : Values.append(+"", coder, value, text)
      rescue Unwritable
        nil
      end

      def quoted(value, text)
        text.quoted(value)
      rescue Unwritable
        nil
      end
      private_class_method :quoted
    end
  end
end
