# frozen_string_literal: true

module Castellan
  module Serialize
    # Reports why a value cannot be written, before its record is known.
    #
    #   raise Unwritable.new(:integer, "seven")
    #   Unwritable.locate(error, type: "users", id: "7", member: "age")   # => EncodingError with the record
    #
    # Used by both encoders, so that their messages are the same.
    class Unwritable < StandardError
      ADVICE = "correct the row, or declare the attribute with a block that returns what is to be written"
      ID_ADVICE = "an id is text or a whole number: save the record, or name the column that identifies it, `id :column`"
      REASONS = {
        utf8: "%s is not valid UTF-8",
        finite: "%s is not a finite number, which JSON cannot write",
        integer: "%s is not an integer",
        text: "%s is not text",
        boolean: "%s is not a boolean (true, false, 1, 0, \"t\", \"f\")",
        float: "%s is not a number",
        decimal: "%s is not a decimal number",
        date: "%s is not a date (2024-01-31)",
        datetime: "%s is not a time (2024-01-31 10:00:00.123)",
        json: "%s is not JSON text",
        id: "%s cannot be an id"
      }.freeze
      private_constant :ADVICE, :ID_ADVICE, :REASONS

      # @return [Symbol] a key of REASONS
      attr_reader :reason

      # @param reason [Symbol]
      # @param value [Object] the driver's value
      def initialize(reason, value)
        @reason = reason
        @value = value
        super(format(REASONS.fetch(reason), shown))
      end

      # @param type [String] the resource's type
      # @param id [String, nil] the record's id
      # @param member [String] the member's name in the document
      # @param place [Array(Integer, Integer), nil] the positions of node and member, see {Serialize.retyping}
      # @return [EncodingError]
      def self.locate(error, type:, id:, member:, place: nil)
        advice = error.reason == :id ? ID_ADVICE : ADVICE
        EncodingError.new("#{type} #{id.to_s.scrub.inspect}, member #{member.inspect}: #{error.message}; #{advice}",
                          place: (place unless error.reason == :utf8))
      end

      private

      def shown
        text = @value.is_a?(String) ? @value.dup.force_encoding(Encoding::UTF_8).inspect : @value.inspect
        text.size > 60 ? "#{text[0, 60]}…" : text
      end
    end
  end
end
