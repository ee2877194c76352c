# frozen_string_literal: true

module Castellan
  module Rows
    # Which errors are those of a driver, for adapters that answer them as their ORM would.
    module DriverError
      module_function

      # @param error [StandardError]
      # @return [Boolean] whether the pg or the sqlite3 gem raised it
      def raised?(error)
        return true if defined?(::PG::Error) && error.is_a?(::PG::Error)

        defined?(::SQLite3::Exception) && error.is_a?(::SQLite3::Exception) || false
      end
    end
  end
end
