# frozen_string_literal: true

module Castellan
  module Verify
    # Represents a value that differs between the document from rows and the document from models.
    #
    #   difference.to_s   # => "users 7: email is nil by rows, \"ada@example.com\" by the models"
    #
    # `attribute` is the member's name, nil if only one document contains the record. The values may be
    # personal data: take care where you log them.
    Difference = Struct.new(:resource, :id, :attribute, :rows, :models) do
      def to_s
        shown = [rows, models].map { |value| value == Facts::ABSENT ? "not there" : value.inspect }
        "#{resource}#{" #{id}" if id}: #{attribute || "the record"} is #{shown[0]} by rows, #{shown[1]} by the models"
      end
    end
  end
end
