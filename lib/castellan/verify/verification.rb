# frozen_string_literal: true

module Castellan
  module Verify
    # What {Verify.call} opens: compares every document that is written inside, and keeps the differences.
    #
    #   verification.check(document, output)   # => the output, or the models' where they say something else
    #
    # Rows may change between the two readings, so a difference counts when a second look finds it again. An error of the models is
    # a difference too; then the rows' answer is served.
    class Verification
      # @return [Array<Difference>]
      # @return [Integer] how many were compared
      # @return [Integer] how many were not, because what is written of each record is decided by conditions, links or several types
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
        return pass_over(output) unless document.plan.nodes.all?(&:regular?)

        @documents += 1
        looking { compared(document, output) }
      rescue StandardError => error
        @differences << Difference.new(document.definition.type.to_s, nil, "verification", "written", "#{error.class}: #{error.message}")
        output
      end

      private

      # Whether a member is shown is the declaration's, not the models': they would say too much.
      def pass_over(output)
        @passed_over += 1
        output
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
