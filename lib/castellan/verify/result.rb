# frozen_string_literal: true

module Castellan
  module Verify
    # What came of {Castellan.verify}: what the block returned, how many documents were compared, and where they differed.
    Result = Struct.new(:value, :documents, :differences) do
      # @return [Boolean] whether something was compared and nothing differed
      def same?
        documents.positive? && differences.empty?
      end

      # @return [String]
      def to_s
        ["#{documents} document#{"s" if documents != 1} written from rows and from models", *differences].join("\n")
      end
    end
  end
end
