# frozen_string_literal: true

require "json"

module Castellan
  module Verify
    # One document from rows beside the same from models.
    #
    #   comparison = Comparison.new(document, output)
    #   comparison.differences   # => [Difference, …]
    #   comparison.answer        # => the models' document, as an Output
    class Comparison
      # @param rows [Hash{Array => Object}] facts
      # @param models [Hash{Array => Object}]
      # @return [Array<Difference>]
      def self.differences(rows, models)
        (rows.keys | models.keys).filter_map { |fact| difference(fact, rows, models) }
      end

      # A record that only one of them has is one difference, not one for each of its members.
      def self.difference(fact, rows, models)
        values = [rows, models].map { |facts| facts.fetch(fact, Facts::ABSENT) }
        return if values[0] == values[1]

        type, id, member = fact
        record = [type, id, nil]
        Difference.new(type, id, member, *values) unless member && id && [rows, models].any? { |facts| !facts.key?(record) }
      end
      private_class_method :difference

      # @param document [Document]
      # @param output [Serialize::Output] written from rows
      def initialize(document, output)
        @document = document
        @output = output
        @models = Models.new(document)
      end

      # @return [Array<Difference>]
      def differences
        Comparison.differences(*[@output, answer].map { |output| facts.of(JSON.parse(filled(output))) })
      end

      # @return [Serialize::Output]
      def answer
        @answer ||= Answer.output(@models, @document)
      end

      private

      def facts
        @facts ||= Facts.new(@document.plan, @models.unordered, @models.ordered?)
      end

      # Holes are the viewer's own: the same for both, so null will do.
      def filled(output)
        body = output.body.b
        output.holes.each_slice(3).reverse_each { |offset, _, _| body.insert(offset, "null") }
        body.force_encoding(Encoding::UTF_8)
      end
    end
  end
end
