# frozen_string_literal: true

require "timeout"
require "pg"
require_relative "../uninterrupted"

module Castellan
  module Rows
    # Runs SELECTs with the pg gem, for connections of ActiveRecord and Sequel.
    #
    #   PostgresDriver.rows(connection, "SELECT … WHERE user_id = ANY($1::bigint[])", [1, 2])
    #   # => PG::Result with values as text
    #   PostgresDriver.rows(connection, sql, [1, 2], prepared: true)   # uses a prepared statement
    #
    # A statement has at most one bound value: the list of ids.
    module PostgresDriver
      TEXTS = PG::TypeMapAllStrings.new.freeze
      INTEGER_IDS = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::Integer.new.freeze).freeze
      TEXT_IDS = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::String.new.freeze).freeze
      # PostgreSQL makes a generic plan for ten ids in each list, so longer lists are not prepared unless an
      # index finds each id. With an index, a prepared statement saves the planner from estimating every id,
      # which costs as much as finding the rows.
      MANY_IDS = 100
      MOST_IDS = 2_000
      # Longer SQL usually contains ids and does not repeat, so it is not prepared.
      LONGEST = 4_000
      NONE = [].freeze
      private_constant :TEXTS, :INTEGER_IDS, :TEXT_IDS, :MANY_IDS, :MOST_IDS, :LONGEST, :NONE

      module_function

      # @param prepared [Boolean] whether the SQL is one of few that repeat
      # @param indexed [Boolean] whether an index finds the rows of one id
      # @return [PG::Result]
      # @raise [PG::Error]
      def rows(connection, sql, ids, prepared: false, indexed: false)
        values = values(ids)
        prepared &&= prepares?(sql, ids, indexed)
        result = prepared ? PostgresStatements.for(connection).exec(sql, values) : connection.exec_params(sql, values)
        texts(result)
      ensure
        Uninterrupted.call { recover(connection) } unless result
      end

      def values(ids)
        ids ? [bind(ids)] : NONE
      end

      # @return [Boolean] whether repeated SQL should be prepared for this number of ids
      def prepares?(sql, ids, indexed)
        sql.bytesize <= LONGEST && (ids.nil? || ids.size <= (indexed ? MOST_IDS : MANY_IDS))
      end

      # @return [PG::Result] the same result, with all values as strings whatever the connection's type map
      def texts(result)
        result.type_map = TEXTS
        result
      end

      # After an interrupt the statement is still running; the connection's next user would wait for it.
      def recover(connection)
        return if connection.finished? || connection.transaction_status != PG::PQTRANS_ACTIVE

        InterruptedConnection.recover(connection) { |answers|
          nil while answers.get_result
          true
        }
      end

      # @return [String] the ids as a PostgreSQL array literal
      def bind(ids)
        (ids.first.is_a?(Integer) ? INTEGER_IDS : TEXT_IDS).encode(ids)
      end

      # Recovers a PostgreSQL connection after an interrupt (Timeout, Thread#kill), or closes it.
      #
      #   InterruptedConnection.recover(connection) { |answers| nil while answers.get_result; true }
      #
      # Cancels the running statement, which aborts its transaction as any error would. Closes the
      # connection if it does not recover within {SECONDS} (the server hangs, or a second interrupt
      # arrives); the caller must then notify its ORM. In {Uninterrupted}, an interrupt is raised while it waits, or
      # after the block.
      class InterruptedConnection
        # The time limit, in seconds, for cancelling and for reading the remaining results together.
        SECONDS = 1.0

        # @yieldparam answers [InterruptedConnection] returns the remaining results
        # @yieldreturn [Boolean] whether all results were read
        def self.recover(connection, &drain)
          new(connection).recover(&drain)
        end

        def initialize(connection)
          @connection = connection
          @deadline = now + SECONDS
        end

        # (see .recover)
        def recover
          back = Thread.handle_interrupt(Object => :immediate) { cancel && yield(self) }
        rescue PG::Error
          nil
        ensure
          @connection.finish unless back || @connection.finished?
        end

        # @raise [PG::UnableToSend] if the server sends nothing until the deadline
        def get_result # rubocop:disable Naming/AccessorMethodName -- as PG::Connection calls it
          await while @connection.is_busy
          @connection.get_result
        end

        private

        def cancel
          Timeout.timeout(SECONDS) { @connection.cancel }.nil?
        rescue Timeout::Error, ThreadError # ThreadError: the process is exiting
          false
        end

        def await
          left = @deadline - now
          raise PG::UnableToSend, "the server does not answer" unless left.positive? && @connection.socket_io.wait_readable(left)

          @connection.consume_input
        end

        def now = Clock.monotonic_ns / 1e9
      end

      # Sends several SELECTs in one round trip with libpq's pipeline mode (pg 1.5, libpq 14).
      #
      #   pipeline = Pipeline.new(connection, queries)
      #   pipeline.result   # => PG::Result of the first query, while the server runs the second
      #   pipeline.result
      #   pipeline.close    # in `ensure`
      #
      # After the last result, or an error, the connection has left pipeline mode and has no results left.
      # After an error the server skips the remaining SELECTs. After an interrupt, `close` recovers the
      # connection or closes it ({InterruptedConnection}).
      #
      # Between the results nothing else may use the connection, not even a subscriber to
      # `sql.active_record`. If your subscribers query the database, set
      # `CASTELLAN_PIPELINE=off`: then each SELECT is a round trip.
      class Pipeline
        POSSIBLE = PG::Connection.method_defined?(:enter_pipeline_mode)
        # Whether the driver can defer flushing; otherwise each statement costs
        # a system call and wakes the server.
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

        # Recovers the connection if results remain unread, or closes it.
        def close
          return PostgresDriver.recover(@connection) unless @open # an interrupt may have left a PREPARE running

          InterruptedConnection.recover(@connection) { |answers| @synced && leave(answers) }
        end

        # @return [Boolean] whether the connection is unusable; its ORM must then be notified
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

        # Sends a statement unprepared if it cannot be prepared, so that it raises its own error. Inside a
        # transaction, the failed PREPARE has already aborted the transaction.
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

        def leave(answers = @connection)
          unless @connection.status == PG::CONNECTION_BAD # a reset connection is not in pipeline mode
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

        # Sends a statement again, unprepared, if the server has deallocated it.
        def retried(error)
          query = @asked[@taken]
          raise error unless query && statements.forgotten?(query.sql, error)

          again
        end

        # After an error, runs the remaining queries one at a time.
        def again
          query = @asked[@taken]
          @taken += 1
          values = PostgresDriver.values(query.ids)
          prepared?(query) ? statements.exec(query.sql, values) : @connection.exec_params(query.sql, values)
        end
      end
    end
  end
end
