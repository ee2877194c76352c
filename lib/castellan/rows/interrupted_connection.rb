# frozen_string_literal: true

require "pg"
require "timeout"

module Castellan
  module Rows
    # Recovers a PostgreSQL connection after an interrupt (Timeout, Thread#kill), or closes it.
    #
    #   InterruptedConnection.recover(connection) { |answers| nil while answers.get_result; true }
    #
    # Cancels the running statement, which aborts its transaction as any error does. A connection that does
    # not recover within {SECONDS} (the server hangs, or a second interrupt arrives) is closed; the caller
    # must then notify its ORM.
    class InterruptedConnection
      # The time limit, in seconds, for cancelling and reading the remaining results together.
      SECONDS = 1.0

      # @param connection [PG::Connection]
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
