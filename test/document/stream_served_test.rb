# frozen_string_literal: true

require "test_helper"
require "net/http"
require "open3"
require "puma"
require "puma/server"
require "rack/lint"
require "rack/mock_request"
require "timeout"
require "document/library"

# Streams a document as the body of a real server, and measures the memory of a process that writes a long
# one.
class StreamServedTest < Minitest::Test
  ENOUGH_KB = 8 * 1024
  PROGRAM = File.expand_path("stream_program.rb", __dir__)
  TITLE = "x" * 100_000

  def setup
    library.fill
    library.run("DELETE FROM articles")
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 200) SELECT n FROM c"
    library.run("INSERT INTO articles (id, author_id, title) SELECT n, 1, '#{TITLE}' FROM (#{numbers})")
  end

  def teardown
    @server&.stop(true)
    library.fill
  end

  def test_the_body_passes_rack_lint
    stream = long.document.stream(size: 10)
    app = Rack::Lint.new(->(_) { [stream.status, stream.headers, stream] })
    status, headers, body = app.call(Rack::MockRequest.env_for("/"))
    assert_equal [200, "application/vnd.api+json"], [status, headers["content-type"]]
    assert_equal long.render, body.enum_for(:each).to_a.join
    body.close
    assert_predicate stream, :closed?
  end

  def test_puma_sends_it_in_chunks
    port = serve { long.document(include: "author").stream(size: 10) }
    response = Net::HTTP.get_response("127.0.0.1", "/", port)
    assert_equal "chunked", response["transfer-encoding"]
    assert_equal long.render(include: "author"), response.body.force_encoding(Encoding::UTF_8)
  end

  def test_a_client_that_disconnects_ends_the_stream
    gone = Queue.new
    stream = long.document.stream(size: 1)
    stream.define_singleton_method(:close) { super().tap { gone << :closed } }
    statements = library.queries do
      client = TCPSocket.new("127.0.0.1", serve { stream })
      client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
      assert_includes client.readpartial(50), "200 OK"
      client.close
      assert_equal(:closed, Timeout.timeout(30) { gone.pop })
    end
    assert_operator statements.size, :<, 200
    held = library.models::Base.connection_pool.connections.select(&:in_use?)
    assert_empty held.map(&:owner).select(&:alive?) - [Thread.current] # servers of other tests are gone, with what they had leased
  end

  def test_the_memory_does_not_grow_with_the_document
    assert_operator memory(100_000), :<, ENOUGH_KB
  end

  def test_the_memory_does_not_grow_with_the_document_on_postgresql
    needs :postgres
    assert_operator memory(100_000, Castellan::TestServers.postgres_url), :<, ENOUGH_KB
  end

  private

  def library = Library.active_record(:sqlite)
  def long = library.models::LongArticleResource

  def serve
    app = lambda do |_|
      stream = yield
      [stream.status, stream.headers, stream]
    end
    @server = Puma::Server.new(app, nil, { log_writer: Puma::LogWriter.null, min_threads: 1, max_threads: 1 })
    listener = @server.add_tcp_listener("127.0.0.1", 0)
    @server.run
    listener.addr[1]
  end

  # @return [Integer] KB above the memory of a document of one record
  def memory(users, *url)
    output, errors, status = Open3.capture3(RbConfig.ruby, "-w", "-I#{ROOT}/lib", PROGRAM, users.to_s, *url)
    assert status.success?, errors
    grown, bytes = output.split.map(&:to_i)
    assert_operator bytes, :>, users * 150
    grown
  end
end
