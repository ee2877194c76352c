# frozen_string_literal: true

require "pg"
require_relative "../postgres_statements"

module Castellan
  module Versions
    # Runs a version's SELECT on a PG::Connection, with the connection's {PostgresStatements}.
    #
    #   reader = PostgresReader.new(prepared: true)
    #   reader.value(raw, "SELECT …")            # => String or nil
    #
    # Pass `prepared: false` behind a pooler in transaction mode that does not support prepared statements
    # (older PgBouncer), or `:direct` to prepare only where there is no pooler.
    class PostgresReader
      ERROR = PG::Error
      NONE = [].freeze
      private_constant :NONE

      def initialize(prepared:)
        @prepared = prepared
        freeze
      end

      # @return [String, nil]
      def value(raw, sql, values = nil)
        values ||= NONE
        result = prepared?(raw) ? PostgresStatements.for(raw).exec(sql, values) : raw.exec_params(sql, values)
        result.getvalue(0, 0) if result.ntuples.positive?
      ensure
        result&.clear
      end

      private

      def prepared?(raw) = @prepared == :direct ? PostgresStatements.for(raw).direct? : @prepared
    end
  end
end
