# frozen_string_literal: true

require "json"

module Castellan
  module Verify
    # Compares each document that is written in the block of {Castellan.verify}, and holds the results.
    #
    #   verification.check(document, output)   # => the output, or the models' output if they differ
    #   verification.differences               # => [#<Difference users 7: …>]
    #
    # Rows may change between the two reads, so a difference counts only if a second comparison finds it
    # again. If the models raise, this is also a difference, and the document from rows is served.
    class Verification
      # Longer streams are not compared, because all their records would be in memory as models.
      MOST_STREAMED = 10_000

      # @return [Array<Difference>]
      # @return [Integer] the number of compared documents
      # @return [Integer] the number of streams that were too long to compare
      attr_reader :differences, :documents, :passed_over
      # @return [Object] the value of the block
      attr_accessor :value

      def initialize
        @differences = []
        @documents = 0
        @passed_over = 0
        @comparing = false
      end

      # @return [Boolean] whether any documents were compared and none differed
      def same?
        documents.positive? && differences.empty?
      end

      def to_s
        not_compared = "#{passed_over} not compared (streams of more than #{MOST_STREAMED} records)" if passed_over.positive?
        ["#{documents} document#{"s" if documents != 1} written from rows and from models", not_compared, *differences].compact.join("\n")
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
          body = one.fill(document.plan.holes.map { ->(ids, _) { ids.to_h { |id| [id, "null"] } } }, nil)
          Facts.new(document.plan, loaded.unordered, loaded.ordered?).of(JSON.parse(body, allow_duplicate_key: true))
        end
      end

      # @param type [String] the type of a {Serializer}
      # @param rows [#call] writes the document from rows
      # @param models [#call] writes the document from records
      # @return [String] the document
      def check_serialized(type, rows, models)
        compare(type, rows.call, rows, models) { |text| Facts.new(nil, nil, false).of(JSON.parse(text, allow_duplicate_key: true)) }
      end

      # @param count [Integer] the number of a stream's primary records
      # @return [Boolean] whether to write the stream in one piece and compare it
      def takes?(count)
        return false if @comparing
        return true if count <= MOST_STREAMED

        @passed_over += 1
        false
      end

      private

      # A model's reader may render a document itself; that document is not compared.
      def compare(type, written, rows, models, &facts)
        return written if @comparing

        @documents += 1
        begin
          @comparing = true
          Recording.resume(nil) { twice(written, rows, models, &facts) } # these statements are not the application's
        rescue StandardError => error
          @differences << Difference.new(type, nil, "verification", "written", "#{error.class}: #{error.message}")
          written
        ensure
          @comparing = false
        end
      end

      def twice(written, rows, models, &facts)
        answer = models.call
        first = Facts.differences(written, answer, &facts)
        return written if first.empty?

        answer = models.call
        found = Facts.differences(rows.call, answer, &facts) & first
        @differences.concat(found)
        found.empty? ? written : answer
      end
    end
  end
end
