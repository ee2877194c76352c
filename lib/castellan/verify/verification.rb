# frozen_string_literal: true

require "json"

module Castellan
  module Verify
    # Compares every document that is written while {Verify.call} runs, and collects the differences.
    #
    #   verification.check(document, output)   # => the output, or the records' where the two differ
    #
    # Rows may change between the two readings, so a difference counts when a second comparison finds it again. An error of the models
    # is a difference too; then the document of the rows is served.
    class Verification
      # The most records of a stream that is compared: it is whole in memory then, with the models of all its records.
      MOST_STREAMED = 10_000

      # @param rows [Hash{Array => Object}] see {Facts}
      # @param models [Hash{Array => Object}]
      # @return [Array<Difference>] a record that only one of them has is one difference, not one for each of its members
      def self.differences(rows, models)
        (rows.keys | models.keys).filter_map do |fact|
          values = [rows, models].map { |facts| facts.fetch(fact, Facts::ABSENT) }
          type, id, member = fact
          missing = member && id && [rows, models].any? { |facts| !facts.key?([type, id, nil]) }
          Difference.new(type, id, member, *values) unless missing || values[0] == values[1]
        end
      end

      # @return [Array<Difference>]
      # @return [Integer] how many documents were compared
      # @return [Integer] how many streams were too long to be compared
      attr_reader :differences, :documents, :passed_over

      def initialize
        @differences = []
        @documents = 0
        @passed_over = 0
        @comparing = false
      end

      # Called for each statement by {Recording}.
      def query(*); end

      # @param document [Document::Rendering]
      # @param output [Serialize::Output] written from rows
      # @return [Serialize::Output]
      def check(document, output)
        loaded = nil
        models = -> { (loaded = LoadedRecords.new(document)).output }
        compare(document.definition.type.to_s, output, document.method(:write_rows), models) do |one|
          Facts.new(document.plan, loaded.unordered, loaded.ordered?).of(JSON.parse(filled(one)))
        end
      end

      # @param type [String] of a {Serializer}
      # @param rows [#call] writes the document from rows
      # @param models [#call] and from records
      # @return [String] the document
      def check_serialized(type, rows, models)
        compare(type, rows.call, rows, models) { |text| Facts.of_serialized(JSON.parse(text)) }
      end

      # @param count [Integer] of the primary records of a stream
      # @return [Boolean] whether it is to be written whole and compared
      def takes?(count)
        return false if @comparing
        return true if count <= MOST_STREAMED

        @passed_over += 1
        false
      end

      private

      # A reader of a model may render a document itself: that one is not compared.
      def compare(type, written, rows, models, &facts)
        return written if @comparing

        @documents += 1
        begin
          @comparing = true
          twice(written, rows, models, &facts)
        rescue StandardError => error
          @differences << Difference.new(type, nil, "verification", "written", "#{error.class}: #{error.message}")
          written
        ensure
          @comparing = false
        end
      end

      def twice(written, rows, models)
        answer = models.call
        first = Verification.differences(*[answer, written].map { |one| yield(one) }.reverse)
        return written if first.empty?

        answer = models.call
        found = Verification.differences(*[answer, rows.call].map { |one| yield(one) }.reverse) & first
        @differences.concat(found)
        found.empty? ? written : answer
      end

      # Holes are filled with the viewer's values, the same for both: null will do.
      def filled(output)
        body = output.body.b
        output.holes.each_slice(3).reverse_each { |offset, _, _| body.insert(offset, "null") }
        body.force_encoding(Encoding::UTF_8)
      end
    end
  end
end
