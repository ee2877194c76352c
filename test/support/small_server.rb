# frozen_string_literal: true

require "socket"

module Castellan
  # Answers HTTP requests with a status line, closes the connection, hangs, or sends a body that does not end.
  #
  #   SmallServer.open(->(_method, path) { path == "/1" ? "200 OK" : nil }) { |url| … }   # nil closes, :hang never answers
  class SmallServer
    FIELDS = "cache-control: public, s-maxage=600\r\ncontent-length: 0\r\n\r\n"
    private_constant :FIELDS

    def self.open(answer)
      server = TCPServer.new("127.0.0.1", 0)
      thread = Thread.new { loop { Thread.new(server.accept) { |socket| new(socket, answer).call } } }
      yield "http://127.0.0.1:#{server.addr[1]}"
    ensure
      thread&.kill&.join
      server&.close
    end

    def initialize(socket, answer)
      @socket = socket
      @answer = answer
    end

    # Answers the requests of one connection, which have no content.
    def call
      while (line = @socket.gets)
        nil until @socket.gets == "\r\n"
        status = @answer.call(*line.split.first(2))
        @socket.read if status == :hang # until the client gives up
        drip if status == :drip
        break unless status.is_a?(String)

        @socket.write("HTTP/1.1 #{status}\r\n#{FIELDS}")
      end
      @socket.close
    rescue IOError, SystemCallError
      @socket.close
    end

    private

    def drip
      @socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
      @socket.write("x") until @socket.wait_readable(0.05)
    end
  end
end
