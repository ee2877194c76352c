# frozen_string_literal: true

module Castellan
  module Rows
    # Recognizes errors of the pg and sqlite3 gems, which adapters translate to their ORM's errors.
    module DriverError
      module_function

      # @param error [StandardError]
      # @return [Boolean] whether the pg or the sqlite3 gem raised it
      def raised?(error)
        return true if defined?(::PG::Error) && error.is_a?(::PG::Error)

        defined?(::SQLite3::Exception) && error.is_a?(::SQLite3::Exception) || false
      end

      # @param error [StandardError] a driver's error
      # @return [Boolean] whether the connection is lost
      def lost?(error)
        (defined?(::PG::ConnectionBad) && (error.is_a?(::PG::ConnectionBad) || error.is_a?(::PG::UnableToSend))) ||
          error.message.match?(/closed database|connection is closed/i)
      end
    end
  end
end
