# frozen_string_literal: true

module Castellan
  module Verify
    # The result of {Castellan.verify}: the value of its block, how many documents were compared, their differences, and how many streams
    # were too long to be compared.
    Result = Struct.new(:value, :documents, :differences, :passed_over) do
      # @return [Boolean] whether something was compared and nothing differed
      def same?
        documents.positive? && differences.empty?
      end

      # @return [String]
      def to_s
        not_compared = "#{passed_over} not compared (streams of more than #{Verification::MOST_STREAMED} records)" if passed_over.positive?
        ["#{documents} document#{"s" if documents != 1} written from rows and from models", not_compared, *differences].compact.join("\n")
      end
    end
  end
end
