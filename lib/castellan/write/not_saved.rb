# frozen_string_literal: true

module Castellan
  module Write
    # Raised if a model refuses to save or delete a record.
    class NotSaved < Error
      # @return [Object]
      attr_reader :record

      def initialize(record)
        @record = record
        super("#{record.class} was not saved")
      end
    end
  end
end
