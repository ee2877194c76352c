# frozen_string_literal: true

module Castellan
  module Rows
    # Why what stands at the end of a path of to-one associations cannot be read as a column, in words.
    #
    #   PathReason.of(adapter, %i[employee desk], :room)   # => nil
    module PathReason
      module_function

      # @param adapter [Object] of the model where the path begins
      # @param path [Array<Symbol>]
      # @param column [Symbol] at its end
      # @return [String, nil]
      def of(adapter, path, column)
        broken(adapter, path) ||
          ("the model at its end reads #{column} by a method or a callback of its own" if adapter.at(path).needs_record?(column))
      end

      # @return [String, nil] why rows cannot follow the path
      def broken(adapter, path)
        path.each do |name|
          reason = step(adapter, adapter.association(name)) and return "#{name} cannot be read as rows: #{reason}"
          adapter = adapter.association(name).adapter
        end
        nil
      end

      def step(adapter, association)
        association.reason || ("it is in another database" unless association.adapter.same_database?(adapter))
      end
      private_class_method :step
    end
  end
end
