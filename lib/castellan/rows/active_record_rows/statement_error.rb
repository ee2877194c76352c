# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Translates driver errors to ActiveRecord's, so that the application's rescues work.
      #
      #   raise StatementError.translate(pg_error, sql, connection)   # => ActiveRecord::QueryCanceled
      #
      # Covers the errors of a SELECT; every other driver error becomes ActiveRecord::StatementInvalid.
      module StatementError
        BY_STATE = { "57014" => "QueryCanceled", "40001" => "SerializationFailure", "40P01" => "Deadlocked", "55P03" => "LockWaitTimeout",
                     "22003" => "RangeError" }.freeze
        private_constant :BY_STATE

        module_function

        # @return [Exception] the error itself if no driver raised it
        def translate(error, sql, connection)
          return error unless DriverError.raised?(error)
          return lost(error, connection) if DriverError.lost?(error)
          return expired(error, connection) if error.respond_to?(:result) && PostgresStatements.expired?(error)

          statement_invalid(named(error)).new("#{error.class}: #{error.message}", sql: sql, binds: [], connection_pool: connection.pool)
        end

        def lost(error, connection)
          ::ActiveRecord::ConnectionFailed.new("#{error.class}: #{error.message}", connection_pool: connection.pool)
        end

        # Raised inside a transaction, which the application must restart.
        def expired(error, connection)
          ::ActiveRecord::PreparedStatementCacheExpired.new(error.message, connection_pool: connection.pool)
        end

        def named(error)
          return "StatementTimeout" if defined?(::SQLite3::BusyException) && error.is_a?(::SQLite3::BusyException)

          BY_STATE[error.result&.error_field(::PG::PG_DIAG_SQLSTATE)] if error.respond_to?(:result)
        end

        def statement_invalid(name)
          ::ActiveRecord.const_get(name || "StatementInvalid")
        end
      end
    end
  end
end
