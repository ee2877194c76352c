# frozen_string_literal: true

require "pg"
require "timeout"

module Castellan
  module Rows
    # Brings back a PostgreSQL connection whose statement was interrupted (Timeout, Thread#kill), or shuts it.
    #
    #   InterruptedConnection.recover(connection) { |answers| nil while answers.get_result; true }
    #
    # What runs is cancelled, which ends a transaction as any error does. A connection that is not back within {SECONDS}, because the
    # server hangs or a second interrupt came, is shut; its ORM must then be notified.
    class InterruptedConnection
      # That cancelling and reading what is left may take together.
      SECONDS = 1.0

      # @param connection [PG::Connection]
      # @yieldparam answers [InterruptedConnection] to read what is left from
      # @yieldreturn [Boolean] whether nothing is left
      def self.recover(connection, &drain)
        new(connection).recover(&drain)
      end

      # Runs a block in `ensure` so that a second interrupt does not skip it: that one comes while {.recover} waits, or after the block.
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
      # @raise [PG::UnableToSend] when the server sends nothing until the deadline
      def get_result # rubocop:disable Naming/AccessorMethodName -- as PG::Connection calls it
        await while @connection.is_busy
        @connection.get_result
      end

      private

      # @return [Boolean] whether the server took it in time
      def cancel
        Timeout.timeout(SECONDS) { @connection.cancel }.nil?
      rescue Timeout::Error, ThreadError # the latter in a process that ends
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
