# frozen_string_literal: true

module Castellan
  module Rows
    # The statements that one PostgreSQL connection has prepared for rows, so that their text is parsed once. Kept by the connection
    # itself and gone with it; a statement is prepared when its text comes the second time.
    #
    #   PreparedStatements.of(pg_connection).exec("SELECT … WHERE id = ANY($1::bigint[])", ["{1,2}"])   # => PG::Result
    #
    # What the server no longer has (DISCARD ALL, a reset) or refuses to run (a column has another type now) is forgotten and asked
    # once more as it is. Inside a transaction that error has ended the transaction: it is raised. Not for a connection behind a
    # pool of connections that knows no prepared statements. A connection serves one thread at a time, and so does this.
    class PreparedStatements
      # A plan that is asked for one id and for many has each of its statements twice.
      LIMIT = 400
      # invalid_sql_statement_name, duplicate_prepared_statement
      UNKNOWN = %w[26000 42P05].freeze
      FEATURE_NOT_SUPPORTED = "0A000"
      private_constant :UNKNOWN, :FEATURE_NOT_SUPPORTED

      # @param connection [PG::Connection]
      # @return [PreparedStatements] of the server process that it speaks to now
      def self.of(connection)
        kept = connection.instance_variable_get(:@castellan_rows_statements)
        return kept if kept && kept.backend == connection.backend_pid

        connection.instance_variable_set(:@castellan_rows_statements, new(connection))
      end

      # Whether a prepared statement failed because the tables changed under it.
      # @param error [PG::Error]
      # @return [Boolean]
      def self.expired?(error)
        result = error.result
        !result.nil? && result.error_field(PG::PG_DIAG_SQLSTATE) == FEATURE_NOT_SUPPORTED &&
          result.error_field(PG::PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery"
      end

      # @return [Integer] the process id of the server's end
      attr_reader :backend

      def initialize(connection)
        @connection = connection
        @backend = connection.backend_pid
        @names = {} # text => name, or false when it came once; the one used least recently first
        @count = 0
      end

      # @return [Integer] how many texts are known
      def size
        @names.size
      end

      # @param values [Array<String>]
      # @return [PG::Result]
      # @raise [PG::Error]
      def exec(sql, values)
        name = name(sql)
        name ? @connection.exec_prepared(name, values) : @connection.exec_params(sql, values)
      rescue PG::Error => error
        raise unless name && forgotten?(sql, error)

        @connection.exec_params(sql, values)
      end

      # @return [String, nil] under which the text is prepared now; nil the first time that it comes
      # @raise [PG::Error]
      def name(sql)
        known = @names.delete(sql)
        if known.nil?
          @names[sql] = false if room?
          return
        end
        @names[sql] = known
        known || prepare(sql)
      rescue PG::Error => error
        raise unless forgotten?(sql, error)
      end

      # @return [Boolean] whether the error is of a statement that the server no longer has or runs, and it can be asked once more
      def forgotten?(sql, error)
        forget?(sql, error) && @connection.transaction_status == PG::PQTRANS_IDLE
      end

      private

      def prepare(sql)
        name = "castellan_rows_#{@count += 1}"
        @connection.prepare(name, sql)
        @names[sql] = name
      end

      # Nothing is given up inside a transaction, which the attempt could end.
      def room?
        return true if @names.size < LIMIT
        return false unless @connection.transaction_status == PG::PQTRANS_IDLE

        _, name = @names.shift
        release(name) if name
        true
      end

      # Closing by the protocol is what a pool of connections in between understands as well.
      def release(name)
        @connection.respond_to?(:close_prepared) ? @connection.close_prepared(name) : @connection.exec("DEALLOCATE #{name}")
      rescue PG::InvalidSqlStatementName # the server has given it up already
        nil
      end

      def forget?(sql, error)
        if UNKNOWN.include?(error.result&.error_field(PG::PG_DIAG_SQLSTATE))
          @names.clear
          return true
        end
        return false unless PreparedStatements.expired?(error)

        name = @names.delete(sql)
        release(name) if name && @connection.transaction_status == PG::PQTRANS_IDLE
        true
      end
    end
  end
end
