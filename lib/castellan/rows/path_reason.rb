# frozen_string_literal: true

module Castellan
  module Rows
    # Explains why a column at the end of a path of to-one associations cannot be read as rows.
    #
    #   PathReason.of(adapter, %i[employee desk], :room)   # => nil
    module PathReason
      AS_STORED = "write as_stored: true for the column as it is in the table"

      module_function

      # @param adapter [Object] the adapter of the model where the path begins
      # @param path [Array<Symbol>]
      # @param column [Symbol] the column at the end of the path
      # @param as_stored [Boolean] whether the model's methods and callbacks are ignored
      # @return [String, nil] nil if rows can read it
      def of(adapter, path, column, as_stored: false)
        broken = broken(adapter, path) and return broken
        reason = adapter.at(path).record_reason(column) unless as_stored
        "#{reason}; #{AS_STORED}" if reason
      end

      # @return [String, nil] why the path cannot be followed in SQL
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
