# frozen_string_literal: true

require "socket"

module Castellan
  # A TCP proxy that a test can stall, to test clients of a server that hangs.
  #
  #   proxy = StallingProxy.new(5432)
  #   connection = PG.connect(host: "127.0.0.1", port: proxy.port, …)
  #   proxy.stall    # drops the bytes of current and new connections
  #   proxy.resume   # forwards new connections; stalled connections stay stalled
  #   proxy.close
  #
  # A block can change what the server sends: `StallingProxy.new(5432) { |bytes| … }`.
  class StallingProxy
    attr_reader :port

    def initialize(target_port, &change)
      @target_port = target_port
      @change = change
      @server = TCPServer.new("127.0.0.1", 0)
      @port = @server.addr[1]
      @pairs = []
      @threads = [Thread.new { accept }]
    end

    # @param new_connections [Boolean] whether to stall new connections, too; a cancel request opens one
    def stall(new_connections: true)
      @stalls = new_connections
      @pairs.each { |pair| pair[:stalled] = true }
    end

    def stalled? = @pairs.any? { |pair| pair[:stalled] }

    def resume
      @stalls = false
    end

    def close
      @threads.each(&:kill).each(&:join)
      @pairs.each { |pair| pair[:sockets].each(&:close) }
      @server.close
    end

    private

    def accept
      loop do
        sockets = [@server.accept, TCPSocket.new("127.0.0.1", @target_port)]
        pair = { sockets: sockets, stalled: @stalls }
        @pairs += [pair]
        [sockets, sockets.reverse].each { |from, to| @threads += [Thread.new { forward(pair, from, to) }] }
      end
    end

    def forward(pair, from, to)
      loop do
        bytes = from.readpartial(65_536)
        bytes = @change.call(bytes) if @change && from.equal?(pair[:sockets].last)
        to.write(bytes) unless pair[:stalled]
      end
    rescue IOError, SystemCallError
      pair[:stalled] || to.close_write unless to.closed?
    end
  end
end
