# frozen_string_literal: true

require "timeout"
require "pg"

module Castellan
  module Rows
    # Runs SELECTs with the pg gem, for connections of ActiveRecord and Sequel.
    #
    #   PostgresDriver.rows(connection, "SELECT … WHERE user_id = ANY($1::bigint[])", [1, 2])   # => PG::Result, values as text
    #   PostgresDriver.rows(connection, sql, [1, 2], prepared: true)                            # prepared statement
    #
    # A statement takes at most one bound value: the list of ids.
    module PostgresDriver
      TEXTS = PG::TypeMapAllStrings.new.freeze
      INTEGER_IDS = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::Integer.new.freeze).freeze
      TEXT_IDS = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::String.new.freeze).freeze
      # For a generic plan, PostgreSQL assumes ten ids in each list, so longer lists are not prepared unless
      # an index finds each id. With an index, a prepared statement saves the planner from estimating every
      # id, which costs as much as finding the rows.
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
        PostgresDriver::InterruptedConnection.uninterrupted { recover(connection) } unless result
      end

      # @return [Array<String>] the statement's bound values
      def values(ids)
        ids ? [bind(ids)] : NONE
      end

      # @return [Boolean] whether SQL that repeats should be prepared for this number of ids
      def prepares?(sql, ids, indexed)
        sql.bytesize <= LONGEST && (ids.nil? || ids.size <= (indexed ? MOST_IDS : MANY_IDS))
      end

      # @return [PG::Result] the same, with all values as strings whatever the connection's type map is
      def texts(result)
        result.type_map = TEXTS
        result
      end

      # After an interrupt the statement still runs, and the connection's next user would wait for it.
      def recover(connection)
        return if connection.finished? || connection.transaction_status != PG::PQTRANS_ACTIVE

        PostgresDriver::InterruptedConnection.recover(connection) { |answers|
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
      #   PostgresDriver::InterruptedConnection.recover(connection) { |answers| nil while answers.get_result; true }
      #
      # Cancels the running statement, which aborts its transaction as any error does. A connection that does
      # not recover within {SECONDS} (the server hangs, or a second interrupt arrives) is closed; the caller
      # must then notify its ORM.
      class InterruptedConnection
        # The time limit, in seconds, for cancelling and reading the remaining results together.
        SECONDS = 1.0

        # @yieldparam answers [InterruptedConnection] returns the remaining results
        # @yieldreturn [Boolean] whether all results were read
        def self.recover(connection, &drain)
          new(connection).recover(&drain)
        end

        # Runs an `ensure` block so that a second interrupt does not skip it: that interrupt is raised while
        # {.recover} waits, or after the block.
        def self.uninterrupted(&block)
          Thread.handle_interrupt(Object => :never, &block)
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

        # @return [PG::Result, nil]
        # @raise [PG::UnableToSend] if the server sends nothing until the deadline
        def get_result # rubocop:disable Naming/AccessorMethodName -- as PG::Connection calls it
          await while @connection.is_busy
          @connection.get_result
        end

        private

        # @return [Boolean] whether the server accepted the cancellation in time
        def cancel
          Timeout.timeout(SECONDS) { @connection.cancel }.nil?
        rescue Timeout::Error, ThreadError # ThreadError is raised while the process exits
          false
        end

        def await
          left = @deadline - now
          raise PG::UnableToSend, "the server does not answer" unless left.positive? && @connection.socket_io.wait_readable(left)

          @connection.consume_input
        end

        def now = Clock.monotonic_ns / 1e9
      end
    end
  end
end
