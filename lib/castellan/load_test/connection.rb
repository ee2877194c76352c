# frozen_string_literal: true

require "net/http"
require "socket"
require "timeout"

module Castellan
  module LoadTest
    # Sends a prepared request to the server under test and reads the response to its last byte.
    #
    #   connection = Connection.new(request, timeout: 30)
    #   connection.exchange { |bytes| total += bytes } # => 200
    #
    # Reconnects if the server or the request requires it, and once if the server closed the idle connection
    # (RFC 9110, 9.2.2). Not thread-safe. Uses Net::HTTPResponse without Net::HTTP, which takes 1.5 times as
    # much CPU time per request, time that the server under test would lack.
    class Connection
      # The response ended before its Content-Length.
      class TruncatedBody < Castellan::Error; end

      FAILURES = [
        SystemCallError, SocketError, IOError, Timeout::Error, TruncatedBody, Net::ProtocolError, Net::HTTPBadResponse,
        Net::HTTPHeaderSyntaxError
      ].freeze

      # IO for Net::BufferedIO, with a deadline.
      # Reads larger pieces than requested, which saves 10% of the CPU time for a body of 145 kB, and records
      # whether a byte arrived.
      class Wire
        PIECE = 64 * 1024
        private_constant :PIECE

        # @return [Boolean] whether a byte arrived since {#expect}
        attr_reader :answered

        def initialize(socket)
          @socket = socket
        end

        # @param deadline_ns [Integer] monotonic time at which the next response must be complete
        def expect(deadline_ns)
          @answered = false
          @deadline_ns = deadline_ns
        end

        def read_nonblock(_bytes, buffer, exception:)
          raise Net::ReadTimeout if Clock.monotonic_ns > @deadline_ns

          @socket.read_nonblock(PIECE, buffer, exception: exception).tap { |read| @answered = true if read.is_a?(String) }
        end

        def write_nonblock(bytes, exception:) = @socket.write_nonblock(bytes, exception: exception)
        def to_io = @socket.to_io
        def closed? = @socket.closed?
        def close = @socket.close
      end
      private_constant :FAILURES, :Wire

      # @return [Integer] the number of connections opened so far
      attr_reader :opened

      # @param request [PreparedRequest]
      # @param timeout [Numeric] seconds for connecting, and for each response
      # @param verify [Boolean] whether to verify the TLS certificate
      def initialize(request, timeout: 30, verify: true)
        @request = request
        @timeout = timeout
        @verify = verify
        @opened = 0
        @io = nil
        require "openssl" if request.tls? # only if needed, because it is slow to load
      end

      # Sends the request and reads the whole response.
      # @yieldparam bytes [Integer] the size of each piece of the body
      # @return [Integer] status
      # @raise one of {#failures}
      def exchange(&count)
        response = send_request
        read_body(response, &count)
        close unless persistent?(response)
        response.code.to_i
      rescue StandardError
        close
        raise
      end

      # @return [Array<Class>] errors of the server or the network; any other error is a bug of the load test
      def failures = @request.tls? ? [*FAILURES, OpenSSL::SSL::SSLError] : FAILURES

      def close
        @io&.close
      rescue IOError, SystemCallError
        nil # already closed
      ensure
        @io = nil
      end

      private

      def send_request
        fresh = @io.nil?
        @io ||= open
        @wire.expect(Clock.monotonic_ns + (@timeout * 1_000_000_000).to_i)
        @io.write(@request.bytes)
        read_head
      rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
        raise if fresh || @wire.answered # a retry would hide a failure

        close
        retry
      end

      def read_head
        loop do
          response = Net::HTTPResponse.read_new(@io)
          return response if response.code == "101" || !response.is_a?(Net::HTTPInformation)
        end
      end

      def read_body(response)
        received = 0
        response.reading_body(@io, @request.body_expected?) do
          response.read_body do |piece|
            received += piece.bytesize
            yield piece.bytesize
          end
        end
        check_length(response, received)
      end

      def check_length(response, received)
        declared = response.content_length if plain_body?(response)
        return if declared.nil? || declared == received

        raise TruncatedBody, "the body ended after #{received} of #{declared} bytes"
      end

      def plain_body?(response) = @request.body_expected? && response.class.body_permitted? && !response.chunked?

      # The end of the connection ends a body without a length (RFC 9112, 6.3).
      def persistent?(response)
        return false if !@request.keep_alive? || response.connection_close? || (plain_body?(response) && response.content_length.nil?)

        response.http_version != "1.0" || response.connection_keep_alive?
      end

      def open
        socket = Socket.tcp(@request.host, @request.port, connect_timeout: @timeout)
        socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
        @opened += 1
        @wire = Wire.new(@request.tls? ? secure(socket) : socket)
        Net::BufferedIO.new(@wire, read_timeout: @timeout, write_timeout: @timeout)
      end

      def secure(socket)
        host = @request.host
        tls = OpenSSL::SSL::SSLSocket.new(socket, tls_context)
        tls.sync_close = true
        tls.hostname = host unless host.match?(/\A[\d.]+\z|:/)
        Timeout.timeout(@timeout) { tls.connect }
        tls.post_connection_check(host) if @verify
        tls
      rescue StandardError
        socket.close
        raise
      end

      def tls_context
        mode = @verify ? OpenSSL::SSL::VERIFY_PEER : OpenSSL::SSL::VERIFY_NONE
        OpenSSL::SSL::SSLContext.new.tap { |context| context.set_params(verify_mode: mode, verify_hostname: @verify) }
      end
    end
  end
end
