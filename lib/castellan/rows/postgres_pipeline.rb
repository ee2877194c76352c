# frozen_string_literal: true

require "pg"

module Castellan
  module Rows
    # Several SELECTs in one round trip, where the pg gem and its libpq know pipelines (1.5, 14). All are sent at once; each answer is
    # taken in the order of the SELECTs, while the server runs the next.
    #
    #   pipeline = PostgresPipeline.new(connection, queries)
    #   pipeline.result   # => PG::Result
    #   pipeline.result
    #   pipeline.close    # in `ensure`
    #
    # With the last answer, or an error, the connection is as it was before: no pipeline, no answer left. After an error the server runs
    # none of the rest, as if it had not been sent. After an interrupt, `close` brings it back, or shuts it ({InterruptedConnection}).
    #
    # Between the answers nothing else may be asked of the connection, not by a subscriber to `sql.active_record` either. An application
    # whose subscribers ask the database sets `CASTELLAN_PIPELINE=off`: then one SELECT follows the other.
    class PostgresPipeline
      POSSIBLE = PG::Connection.method_defined?(:enter_pipeline_mode)
      # Whether the driver can be told not to send each statement by itself: that costs a call of the system each, and wakes the server.
      GATHERS = PG::Connection.private_method_defined?(:flush_data=)
      private_constant :POSSIBLE, :GATHERS

      # @return [Boolean] whether the driver can, and nobody forbids it
      def self.possible?
        POSSIBLE && ENV["CASTELLAN_PIPELINE"] != "off"
      end

      # @param connection [PG::Connection]
      # @param queries [Array<Query>] one or more
      def initialize(connection, queries)
        @connection = connection
        @asked = queries
        @taken = 0
      end

      # @return [PG::Result] of the next SELECT
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

      # Brings the connection back where an answer was not taken, or shuts it.
      def close
        return PostgresDriver.recover(@connection) unless @open # a statement may have been interrupted while it was prepared

        InterruptedConnection.recover(@connection) { |answers| @synced && leave(answers) }
      end

      # @return [Boolean] whether the connection is of no use any more, so that its ORM must be notified
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

      # What cannot be prepared is sent as it is, so that the error is its own. In a transaction that error has ended it.
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
        @statements ||= PreparedStatements.of(@connection)
      end

      def prepared?(query)
        query.kept && PostgresDriver.prepares?(query.sql, query.ids, query.indexed)
      end

      def post(name, query)
        values = PostgresDriver.values(query.ids)
        name ? @connection.send_query_prepared(name, values) : @connection.send_query_params(query.sql, values)
      end

      # Reads whatever is left.
      # @return [true]
      def leave(answers = @connection)
        unless @connection.status == PG::CONNECTION_BAD # begun anew, it is in no pipeline
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

      # What the server no longer has prepared is asked once more as it is.
      def retried(error)
        query = @asked[@taken]
        raise error unless query && statements.forgotten?(query.sql, error)

        again
      end

      # The rest, one by one.
      def again
        query = @asked[@taken]
        @taken += 1
        values = PostgresDriver.values(query.ids)
        prepared?(query) ? statements.exec(query.sql, values) : @connection.exec_params(query.sql, values)
      end
    end
  end
end
