# frozen_string_literal: true

require "json"

module Castellan
  module Rows
    # Encodes the values of one member as JSON. If a value cannot be encoded, the error names its record.
    #
    #   JSONTexts.of(["Ada", nil], adapter, node, "name") { |row| ids[row] }   # => ["\"Ada\"", "null"]
    module JSONTexts
      ADVICE = "correct the row, or let the block return what is to be written"
      private_constant :ADVICE

      module_function

      # @param values [Array<Object>] one for each row
      # @param member [String] the member's name in the document
      # @yieldparam row [Integer]
      # @yieldreturn [Object] the id of the row
      # @return [Array<String>]
      # @raise [EncodingError] if a value cannot be written as JSON
      def of(values, adapter, node, member)
        row = -1
        values.map { |value| (row += 1) && adapter.json(value) }
      rescue ::JSON::GeneratorError, ::JSON::NestingError, ::EncodingError => error
        raise EncodingError, "#{node.definition.type} #{yield(row).to_s.inspect}, member #{member.inspect}: " \
                             "#{error.message.scrub[0, 120]}; #{ADVICE}"
      end
    end
  end
end
