# frozen_string_literal: true

require "digest/sha2"

module Castellan
  # Caches the prepared statements of a PostgreSQL connection.
  #
  #   PostgresStatements.for(pg_connection).exec("SELECT … WHERE id = ANY($1::bigint[])", ["{1,2}"])   # => PG::Result
  #
  # The cache is part of the connection. It prepares a statement when the same SQL runs for the second time.
  # If the server lost a statement (DISCARD ALL, a reset) or the type of a column changed, runs the SQL again
  # unprepared; inside a transaction it raises, because the error has aborted the transaction. Do not use it
  # behind a connection pooler that does not support prepared statements. Not thread-safe, like the
  # connection.
  class PostgresStatements
    # Each statement of a plan may exist twice: for one id, and for many ids.
    LIMIT = 400
    # invalid_sql_statement_name, duplicate_prepared_statement
    UNKNOWN = %w[26000 42P05].freeze
    FEATURE_NOT_SUPPORTED = "0A000"
    private_constant :UNKNOWN, :FEATURE_NOT_SUPPORTED

    # @param connection [PG::Connection]
    # @return [PostgresStatements] the cache for the server process; after a reconnect a new one
    def self.for(connection)
      kept = connection.instance_variable_get(:@castellan_statements)
      return kept if kept && kept.backend == connection.backend_pid

      connection.instance_variable_set(:@castellan_statements, new(connection))
    end

    # Whether a prepared statement failed because its tables changed.
    # @param error [PG::Error]
    # @return [Boolean]
    def self.expired?(error)
      result = error.result
      !result.nil? && result.error_field(PG::PG_DIAG_SQLSTATE) == FEATURE_NOT_SUPPORTED &&
        result.error_field(PG::PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery"
    end

    # @return [Integer] the process id of the PostgreSQL backend
    attr_reader :backend

    def initialize(connection)
      @connection = connection
      @backend = connection.backend_pid
      @names = {} # SQL => name, or false after the first run; least recently used first
      @count = 0
    end

    # @return [Integer] the number of cached statements
    def size
      @names.size
    end

    # Behind a connection pooler such as PgBouncer, the server process differs from the one that the
    # connection reports.
    # @return [Boolean] whether one server process runs all statements of the connection; checked once
    def direct?
      return @direct if defined?(@direct)

      @direct = @connection.exec("SELECT pg_backend_pid()").getvalue(0, 0).to_i == backend
    rescue PG::Error # inside a failed transaction
      false
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

    # @return [String, nil] the name of the prepared statement; nil when the SQL runs for the first time
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

    # @return [Boolean] whether the server lost or rejects the statement, and it can run again
    def forgotten?(sql, error)
      forget?(sql, error) && @connection.transaction_status == PG::PQTRANS_IDLE
    end

    private

    def prepare(sql)
      name = "castellan_#{Digest::SHA256.hexdigest(sql)[0, 24]}_#{@count += 1}"
      @connection.prepare(name, sql)
      @names[sql] = name
    end

    # Deallocates nothing inside a transaction, because an error would abort the transaction.
    def room?
      return true if @names.size < LIMIT
      return false unless @connection.transaction_status == PG::PQTRANS_IDLE

      _, name = @names.shift
      release(name) if name
      true
    end

    # Closing a statement by the protocol also works behind connection poolers.
    def release(name)
      @connection.respond_to?(:close_prepared) ? @connection.close_prepared(name) : @connection.exec("DEALLOCATE #{name}")
    rescue PG::InvalidSqlStatementName # the server has already deallocated it
      nil
    end

    def forget?(sql, error)
      if UNKNOWN.include?(error.result&.error_field(PG::PG_DIAG_SQLSTATE))
        @names.clear
        return true
      end
      return false unless PostgresStatements.expired?(error)

      name = @names.delete(sql)
      release(name) if name && @connection.transaction_status == PG::PQTRANS_IDLE
      true
    end
  end
end
