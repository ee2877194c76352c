# frozen_string_literal: true

require "socket"

# A server that answers each request with the given bytes, including faults.
#
#   ScriptedServer.open(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]) { |server| get(server.url) }
#
# The answers are used in turn across connections, the last one repeatedly. In an answer, :close closes the
# connection, :reset resets it, and :hang waits until the client disconnects.
class ScriptedServer
  def self.open(answers)
    server = new(answers)
    yield server
  ensure
    server&.stop
  end

  # @return [Array<String>] the heads of the received requests
  attr_reader :requests
  # @return [Integer] the number of accepted connections
  attr_reader :connections

  def initialize(answers)
    @answers = answers.dup
    @requests = []
    @connections = 0
    @lock = Mutex.new
    @server = TCPServer.new("127.0.0.1", 0)
    @threads = [Thread.new { accept }]
  end

  def url(path = "/") = "http://127.0.0.1:#{@server.addr[1]}#{path}"

  def stop
    @server.close
    @threads.each(&:kill).each(&:join)
  end

  private

  def accept
    loop do
      socket = @server.accept
      @connections += 1
      @threads << Thread.new { serve(socket) }
    end
  rescue IOError, Errno::EBADF
    nil
  end

  def serve(socket)
    while (head = socket.gets("\r\n\r\n"))
      answer = @lock.synchronize { (@requests << head) && (@answers.size > 1 ? @answers.shift : @answers.first) }
      Array(answer).each { |part| send_part(socket, part) }
    end
  rescue IOError, SystemCallError
    nil
  ensure
    socket.close
  end

  def send_part(socket, part)
    case part
    when :close then socket.close
    when :reset then reset(socket)
    when :hang then socket.read
    else socket.write(part)
    end
  end

  def reset(socket)
    socket.setsockopt(Socket::Option.linger(true, 0))
    socket.close
  end
end
