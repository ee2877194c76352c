# frozen_string_literal: true

require "test_helper"
require "dalli"
require "redis-client"
require "socket"

# With a server that sends garbage or never ends a reply, each operation is a miss or a StoreError, in time.
class NonsenseServerTest < Minitest::Test
  SERVERS = {
    "a line that is no answer" => ->(client) { loop { client.readpartial(4_096) && client.write("HELLO\r\n") } },
    "bytes" => ->(client) { loop { client.readpartial(4_096) && client.write("\x80\x00\xFF?\n" * 40) } },
    "a line without an end" => ->(client) { loop { client.write("x" * 65_536) } },
    "lines without an end" => ->(client) { loop { client.write("VA 1 k\r\nx\r\n" * 1_000) } },
    "a value of 4 GB" => ->(client) { loop { client.write("$4000000000\r\nVA 4000000000 k\r\n") && client.write("x" * 65_536) } },
    "a list of 4,000,000,000 values" => ->(client) { loop { client.write("*4000000000\r\n$1\r\nx\r\n") } },
    "one answer too few" => ->(client) { loop { client.readpartial(4_096) && client.write("*1\r\n$1\r\nx\r\n") } },
    "numbers that are none" => ->(client) { loop { client.readpartial(4_096) && client.write(":1e\r\n" * 4) } },
    "a text without a value" => ->(client) { loop { client.readpartial(4_096) && client.write("=-1\r\n" * 4) } },
    "a size of 30 digits" => ->(client) { loop { client.readpartial(4_096) && client.write("*#{"9" * 30}\r\n") } },
    "nothing" => ->(client) { client.read }
  }.freeze
  USES = {
    read_multi: [%w[a b]], write_multi: [{ "a" => "1", "b" => "2" }], delete_multi: [%w[a]], increment: ["a"], compare_and_delete: %w[a x]
  }.freeze
  LIMIT_SECONDS = 4 # the deadline of an operation is 1 s

  def setup
    super
    @level = Dalli.logger.level
    Dalli.logger.level = Logger::FATAL
  end

  def teardown
    Dalli.logger.level = @level
    super
  end

  def test_redis_that_sends_nonsense
    assert_bounded { |port| Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:#{port}") }
  end

  def test_memcached_that_sends_nonsense
    assert_bounded { |port| Castellan::Store::MemcachedStore.new("127.0.0.1:#{port}") }
  end

  private

  def assert_bounded
    SERVERS.each do |name, behaviour|
      serve(behaviour) do |port|
        USES.each { |use, arguments| assert_miss(yield(port), use, arguments, "#{use}: #{name}") }
      end
    end
  end

  def assert_miss(store, use, arguments, message)
    started_ns = Castellan::Clock.monotonic_ns
    found = begin
      store.public_send(use, *arguments)
    rescue Castellan::StoreError => error
      error
    end
    assert_operator Castellan::Clock.monotonic_ns - started_ns, :<, LIMIT_SECONDS * 1_000_000_000, message
    return if found.is_a?(Castellan::StoreError) || use == :write_multi # memcached sends no reply to a quiet write

    assert_includes [{}, nil, false], found, message
  end

  def serve(behaviour)
    server = TCPServer.new("127.0.0.1", 0)
    clients = Queue.new
    thread = Thread.new { loop { serve_client(server.accept.tap { |client| clients << client }, behaviour) } }
    yield server.addr[1]
  ensure
    thread&.kill
    server&.close
    clients.pop.close until clients.empty?
  end

  def serve_client(client, behaviour)
    Thread.new do
      behaviour.call(client)
    rescue SystemCallError, IOError
      client.close
    end
  end
end
