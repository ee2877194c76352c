# frozen_string_literal: true

module Castellan
  module Write
    # Reports that a model refused to be saved or deleted.
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
