# frozen_string_literal: true

module Castellan
  module LoadTest
    # Simulates one user: sends requests one after the other until the budget is used up.
    #
    #   client = Client.new(connection, budget: budget, expect: [200..299])
    #   client.call.successful # => 1_639
    #
    # Runs in a thread of its own, which may be killed while it waits.
    class Client
      # @return [Counts]
      attr_reader :counts

      # @param connection [Connection]
      # @param expect [Array<#===>] statuses that count as success
      # @param budget [Budget] checked before each request
      def initialize(connection, budget:, expect:)
        @connection = connection
        @budget = budget
        @expect = expect
        @counts = Counts.new
      end

      # @return [Counts]
      def call
        transaction while @budget.take(@counts)
        @counts
      ensure
        @counts.connected(@connection.opened)
        @connection.close
      end

      private

      def transaction
        bytes = 0
        started = Clock.monotonic_ns
        status = @connection.exchange { |more| bytes += more }
        record(status, Clock.monotonic_ns - started, bytes)
      rescue *@connection.failures => error
        failure(reason(error), bytes: bytes)
      end

      def record(status, duration_ns, bytes)
        return @counts.success(duration_ns, bytes) if @expect.any? { |expected| expected === status } # rubocop:disable Style/CaseEquality

        failure("status #{status}", bytes: bytes, answered: true)
      end

      def failure(reason, **counted)
        @budget.failure
        @counts.failure(reason, **counted)
      end

      def reason(error)
        case error
        when Errno::ECONNREFUSED then "connection refused"
        when Errno::ECONNRESET, Errno::EPIPE then "connection reset by the server"
        when Timeout::Error, Errno::ETIMEDOUT then "timed out"
        when SocketError then "the host was not found (#{error.message})"
        when Net::HTTPBadResponse then "not an HTTP answer: #{error.message[0, 80]}"
        when EOFError then "the server closed the connection before the answer was whole"
        when Connection::TruncatedBody then error.message
        when SystemCallError, IOError, Net::ProtocolError, Net::HTTPHeaderSyntaxError then "#{error.class}: #{error.message}"
        else "TLS failed: #{error.message}"
        end
      end
    end
  end
end
