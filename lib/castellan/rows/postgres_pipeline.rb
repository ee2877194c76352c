# frozen_string_literal: true

require "pg"

module Castellan
  module Rows
    # Sends several SELECTs in one round trip with libpq's pipeline mode (pg 1.5, libpq 14).
    # Results are read in order, while the server runs the next SELECT.
    #
    #   pipeline = PostgresPipeline.new(connection, queries)
    #   pipeline.result   # => PG::Result
    #   pipeline.result
    #   pipeline.close    # in `ensure`
    #
    # After the last result, or an error, the connection is out of pipeline mode and has no results left.
    # After an error the server skips the remaining SELECTs. After an interrupt, `close` recovers the
    # connection or closes it ({InterruptedConnection}).
    #
    # Between the results nothing else may use the connection, not even a subscriber to `sql.active_record`.
    # If your subscribers query the database, set `CASTELLAN_PIPELINE=off`: then each SELECT is a round trip.
    class PostgresPipeline
      POSSIBLE = PG::Connection.method_defined?(:enter_pipeline_mode)
      # Whether the driver can defer flushing; otherwise each statement is a system call and wakes the server.
      GATHERS = PG::Connection.private_method_defined?(:flush_data=)
      private_constant :POSSIBLE, :GATHERS

      # @return [Boolean] whether the driver supports pipelines and `CASTELLAN_PIPELINE` is not "off"
      def self.possible?
        POSSIBLE && ENV["CASTELLAN_PIPELINE"] != "off"
      end

      # @param connection [PG::Connection]
      # @param queries [Array<Query>] at least one
      def initialize(connection, queries)
        @connection = connection
        @asked = queries
        @taken = 0
      end

      # @return [PG::Result] the next SELECT's result
      # @raise [PG::Error]
      def result
        return again if @taken.positive? && !@open

        start if @taken.zero?
        result = @connection.get_last_result or raise PG::ConnectionBad, "the connection ended before its answers"
        leave if (@taken += 1) == @asked.size
        result
      rescue PG::Error => error
        leave if @open
        retried(error)
      end

      # Recovers the connection if results were not read, or closes it.
      def close
        return PostgresDriver.recover(@connection) unless @open # an interrupt may have left a PREPARE running

        PostgresDriver::InterruptedConnection.recover(@connection) { |answers| @synced && leave(answers) }
      end

      # @return [Boolean] whether the connection is unusable, so that its ORM must be notified
      def lost?
        @connection.finished? || @connection.status == PG::CONNECTION_BAD
      end

      private

      def start
        names = @asked.map { |query| name(query) }
        @connection.discard_results
        @open = true
        @connection.enter_pipeline_mode
        gathered { @asked.each_with_index { |query, index| post(names[index], query) } }
        sync
      end

      # A statement that cannot be prepared is sent unprepared, so that it raises its own error. Inside a
      # transaction the failed PREPARE has already aborted the transaction.
      def name(query)
        statements.name(query.sql) if prepared?(query)
      rescue PG::Error
        raise unless @connection.transaction_status == PG::PQTRANS_IDLE
      end

      def gathered
        return yield if !GATHERS || @connection.nonblocking?

        begin
          @connection.send(:flush_data=, false)
          yield
        ensure
          @connection.send(:flush_data=, true)
        end
      end

      def statements
        @statements ||= PostgresStatements.for(@connection)
      end

      def prepared?(query)
        query.kept && PostgresDriver.prepares?(query.sql, query.ids, query.indexed)
      end

      def post(name, query)
        values = PostgresDriver.values(query.ids)
        name ? @connection.send_query_prepared(name, values) : @connection.send_query_params(query.sql, values)
      end

      # Reads the remaining results and leaves pipeline mode.
      # @return [true]
      def leave(answers = @connection)
        unless @connection.status == PG::CONNECTION_BAD # a connection that was reset is not in pipeline mode
          sync unless @synced || @connection.pipeline_status == PG::PQ_PIPELINE_OFF
          nil until @connection.pipeline_status == PG::PQ_PIPELINE_OFF || ended?(answers.get_result)
          @connection.exit_pipeline_mode
        end
        @open = false
        true
      end

      def sync
        @connection.pipeline_sync
        @synced = true
      end

      def ended?(result)
        return @connection.status == PG::CONNECTION_BAD unless result

        result.result_status == PG::PGRES_PIPELINE_SYNC
      end

      # Sends a statement again, unprepared, if the server no longer has it.
      def retried(error)
        query = @asked[@taken]
        raise error unless query && statements.forgotten?(query.sql, error)

        again
      end

      # After an error, runs the remaining queries one by one.
      def again
        query = @asked[@taken]
        @taken += 1
        values = PostgresDriver.values(query.ids)
        prepared?(query) ? statements.exec(query.sql, values) : @connection.exec_params(query.sql, values)
      end
    end
  end
end
