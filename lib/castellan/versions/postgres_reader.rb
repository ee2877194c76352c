# frozen_string_literal: true

require "pg"

module Castellan
  module Versions
    # Runs a version's SELECT on a PG::Connection, prepared once a connection.
    #
    #   reader = PostgresReader.new(prepared: true)
    #   reader.value(raw, "castellan_1", "SELECT …")            # => String or nil
    #
    # Behind a pooler that gives each transaction another connection (PgBouncer in its older versions), say `prepared: false`.
    class PostgresReader
      ERROR = PG::Error
      UNKNOWN = [PG::UndefinedTable, PG::UndefinedColumn, PG::InvalidSchemaName].freeze # what a statement names is not there
      LIMIT = 256 # statements a connection; further ones are sent unprepared

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

      # Kept on the connection itself, because it is what has these statements, and ends with it.
      def names(raw)
        raw.instance_variable_get(:@castellan_statements) || raw.instance_variable_set(:@castellan_statements, {})
      end
    end
  end
end
