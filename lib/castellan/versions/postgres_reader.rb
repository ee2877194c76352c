# frozen_string_literal: true

require "pg"

module Castellan
  module Versions
    # Runs a version's SELECT on a PG::Connection, prepared once per connection.
    #
    #   reader = PostgresReader.new(prepared: true)
    #   reader.value(raw, "castellan_1", "SELECT …")            # => String or nil
    #
    # Pass `prepared: false` behind a pooler that assigns each transaction another connection (older
    # PgBouncer).
    class PostgresReader
      ERROR = PG::Error
      UNKNOWN = [PG::UndefinedTable, PG::UndefinedColumn, PG::InvalidSchemaName].freeze # missing objects
      LIMIT = 256 # statements per connection; further ones are sent unprepared

      def initialize(prepared:)
        @prepared = prepared
        freeze
      end

      # @return [String, nil]
      def value(raw, name, sql, _tokens = nil)
        result = run(raw, name, sql)
        result.getvalue(0, 0) if result.ntuples.positive?
      ensure
        result&.clear
      end

      private

      def run(raw, name, sql)
        return raw.exec_params(sql, []) unless @prepared && prepare(raw, name, sql)

        raw.exec_prepared(name)
      rescue PG::InvalidSqlStatementName # DISCARD ALL, or a pooler
        names(raw).clear
        raise if raw.transaction_status != PG::PQTRANS_IDLE

        raw.exec_params(sql, [])
      end

      def prepare(raw, name, sql)
        names = names(raw)
        return true if names.key?(name)
        return false if names.size >= LIMIT

        raw.prepare(name, sql)
        names[name] = true
      end

      # Stored on the connection, because its prepared statements end with it.
      def names(raw)
        raw.instance_variable_get(:@castellan_statements) || raw.instance_variable_set(:@castellan_statements, {})
      end
    end
  end
end
