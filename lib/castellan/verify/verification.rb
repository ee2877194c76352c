# frozen_string_literal: true

require "json"

module Castellan
  module Verify
    # What {Verify.call} opens: compares every document that is written inside, and keeps the differences.
    #
    #   verification.check(document, output)   # => the output, or the models' where they say something else
    #
    # Rows may change between the two readings, so a difference counts when a second look finds it again. An error of the models is
    # a difference too; then the rows' answer is served.
    class Verification
      # How many records a stream may have to be compared: it is whole in memory then, with the models of all its records.
      MOST_STREAMED = 10_000

      # @return [Array<Difference>]
      # @return [Integer] how many were compared
      # @return [Integer] how many were not: streams of more records than that
      attr_reader :differences, :documents, :passed_over

      def initialize
        @differences = []
        @documents = 0
        @passed_over = 0
        @looking = false
      end

      # For {Recording}: statements are of no interest here.
      def query(*); end

      # @param document [Document]
      # @param output [Serialize::Output] written from rows
      # @return [Serialize::Output]
      def check(document, output)
        return output if @looking # a model's reader renders something itself

        @documents += 1
        looking { compared(document, output) }
      rescue StandardError => error
        failed(document.definition.type.to_s, error)
        output
      end

      # @param type [String] of a {Serializer}
      # @param rows [#call] writes the document from rows
      # @param models [#call] and from records
      # @return [String] the document
      def check_serialized(type, rows, models)
        text = rows.call
        return text if @looking

        @documents += 1
        looking { compared_serialized(text, rows, models) }
      rescue StandardError => error
        raise unless text

        failed(type, error)
        text
      end

      # @param count [Integer] of the primary records of a stream
      # @return [Boolean] whether it is to be written whole and compared
      def takes?(count)
        return false if @looking
        return true if count <= MOST_STREAMED

        @passed_over += 1
        false
      end

      private

      def failed(type, error)
        @differences << Difference.new(type, nil, "verification", "written", "#{error.class}: #{error.message}")
      end

      def compared_serialized(text, rows, models)
        answer = models.call
        first = between(text, answer)
        return text if first.empty?

        answer = models.call
        found = between(rows.call, answer) & first
        @differences.concat(found)
        found.empty? ? text : answer
      end

      def between(rows, models)
        Comparison.differences(*[rows, models].map { |text| Facts.of_serialized(JSON.parse(text)) })
      end

      def looking
        @looking = true
        yield
      ensure
        @looking = false
      end

      def compared(document, output)
        first = Comparison.new(document, output)
        return output if first.differences.empty?

        second = Comparison.new(document, document.write_rows)
        found = second.differences & first.differences
        @differences.concat(found)
        found.empty? ? output : second.answer
      end
    end
  end
end
