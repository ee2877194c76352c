# frozen_string_literal: true

require "digest"

module Castellan
  # Caches the prepared statements of one PostgreSQL connection.
  # The connection holds the cache; a statement is prepared when its SQL runs for the second time.
  #
  #   PostgresStatements.for(pg_connection).exec("SELECT … WHERE id = ANY($1::bigint[])", ["{1,2}"])   # => PG::Result
  #
  # If the server has lost a statement (DISCARD ALL, a reset) or a column's type has changed, the statement
  # runs again unprepared; inside a transaction the error is raised, because it has aborted the transaction.
  # Do not use it behind a connection pooler without support for prepared statements. Not thread-safe, like
  # the connection.
  class PostgresStatements
    # Each statement of a plan may exist twice: for one id and for many.
    LIMIT = 400
    # invalid_sql_statement_name, duplicate_prepared_statement
    UNKNOWN = %w[26000 42P05].freeze
    FEATURE_NOT_SUPPORTED = "0A000"
    private_constant :UNKNOWN, :FEATURE_NOT_SUPPORTED

    # @param connection [PG::Connection]
    # @return [PostgresStatements] the cache for the current server process; a new one after a reconnect
    def self.for(connection)
      kept = connection.instance_variable_get(:@castellan_statements)
      return kept if kept && kept.backend == connection.backend_pid

      connection.instance_variable_set(:@castellan_statements, new(connection))
    end

    # Whether a prepared statement failed because its tables have changed.
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
      @names = {} # SQL => name, or false if it ran once; least recently used first
      @count = 0
    end

    # @return [Integer] the number of cached statements
    def size
      @names.size
    end

    # A connection pooler such as PgBouncer names a server process of its own.
    # @return [Boolean] whether the same server process runs all statements of the connection; asked once
    def direct?
      return @direct if defined?(@direct)

      @direct = @connection.exec("SELECT pg_backend_pid()").getvalue(0, 0).to_i == backend
    rescue PG::Error # in a failed transaction
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

    # @return [String, nil] the prepared statement's name; nil the first time that the SQL runs
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

    # @return [Boolean] whether the server lost or refuses the statement, and it can run again
    def forgotten?(sql, error)
      forget?(sql, error) && @connection.transaction_status == PG::PQTRANS_IDLE
    end

    private

    def prepare(sql)
      name = "castellan_#{Digest::SHA256.hexdigest(sql)[0, 24]}_#{@count += 1}"
      @connection.prepare(name, sql)
      @names[sql] = name
    end

    # Deallocates nothing inside a transaction, because a failed attempt could abort it.
    def room?
      return true if @names.size < LIMIT
      return false unless @connection.transaction_status == PG::PQTRANS_IDLE

      _, name = @names.shift
      release(name) if name
      true
    end

    # Closing through the protocol also works behind connection poolers.
    def release(name)
      @connection.respond_to?(:close_prepared) ? @connection.close_prepared(name) : @connection.exec("DEALLOCATE #{name}")
    rescue PG::InvalidSqlStatementName # the server has deallocated it already
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
