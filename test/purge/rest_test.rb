# frozen_string_literal: true

require "test_helper"
require "support/mounted_application"
require "support/printed_proxies"

# Requests and responses of the application of Castellan and of the one of `--rest`, through each proxy.
class PurgeRestTest < Minitest::Test
  include PrintedProxies

  KINDS = %w[nginx varnish haproxy].freeze
  JSON_API = "application/vnd.api+json"

  def test_both_applications_learn_the_address_and_the_protocol_of_the_client
    proxies do |kind, url|
      %w[/posts /old].each do |path|
        seen = JSON.parse(get(url + path, "x-forwarded-for" => "192.0.2.7").body)
        assert_match(/\A192\.0\.2\.7, ?127\.0\.0\.1\z/, seen["HTTP_X_FORWARDED_FOR"], "#{kind} #{path}")
        assert_equal "127.0.0.1", JSON.parse(get(url + path).body)["HTTP_X_FORWARDED_FOR"], kind
        assert_equal "http", seen["HTTP_X_FORWARDED_PROTO"], "#{kind} #{path}" unless [kind, path] == %w[varnish /old]
      end
    end
  end

  def test_documents_of_castellan_are_compressed_and_those_of_the_rest_unchanged
    proxies do |kind, url|
      2.times { assert_equal "gzip", get("#{url}/posts", "accept-encoding" => "gzip")["content-encoding"], kind }
      assert_nil get("#{url}/posts", "accept-encoding" => "identity")["content-encoding"], kind
      response = get("#{url}/old", "accept-encoding" => "gzip")
      assert_nil response["content-encoding"], kind
      assert_equal "gzip", JSON.parse(response.body)["HTTP_ACCEPT_ENCODING"], kind
    end
  end

  # The proxies compress, so they make the ETags of documents weak; If-Match compares strongly (RFC 9110, section 13.1.1).
  def test_a_client_may_send_the_etag_of_a_compressed_document_in_if_match
    etag = %("ab-_")
    app = lambda do |env|
      body = JSON.generate("if-match" => env["HTTP_IF_MATCH"], "filling" => "x" * 2_000)
      [200, { "content-type" => JSON_API, "cache-control" => "public, s-maxage=60", "etag" => etag }, [body]]
    end
    proxies(castellan: app) do |kind, url|
      sent = get("#{url}/posts/1", "accept-encoding" => "gzip")["etag"]
      assert_equal "W/#{etag}", sent, kind
      [sent, etag].each do |condition|
        response = Net::HTTP.start(URI(url).host, URI(url).port) { |http| http.patch("/posts/1", "{}", "if-match" => condition) }
        assert_equal etag, JSON.parse(response.body)["if-match"], kind
      end
    end
  end

  def test_the_rest_may_have_large_header_fields_and_websockets
    large = "x" * 7_000
    app = lambda do |env|
      if env["HTTP_UPGRADE"]
        fields = { "upgrade" => "websocket", "connection" => "upgrade", "sec-websocket-accept" => "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" }
        [101, fields, ->(stream) { stream.write(stream.readpartial(4).upcase) && stream.close }]
      else
        [200, { "content-type" => "text/plain", "x-large" => large, "x-larger" => large }, [env["REQUEST_URI"]]]
      end
    end
    proxies(rest: app) do |kind, url|
      assert_equal [large, "//posts/1"], get("#{url}//posts/1").then { |response| [response["x-larger"], response.body[0, 9]] }, kind
      assert_equal "PING", ping(URI(url).port), kind
    end
  end

  # Otherwise a client could send the application requests that the proxy does not see, as another client. Varnish
  # cannot wait for the application's consent to a WebSocket.
  def test_a_connection_becomes_a_tunnel_only_for_a_websocket
    app = ->(env) { [200, { "content-type" => "text/plain" }, ["#{env["REQUEST_URI"]} #{env["HTTP_UPGRADE"]}"]] }
    proxies(rest: app, castellan: ->(_env) { [200, {}, ["castellan"]] }) do |kind, url|
      websocket, *others = ["websocket", "h2c", "h2c, websocket"].map do |protocol|
        raw(URI(url).port, "GET /old HTTP/1.1\r\nHost: a.org\r\nConnection: Upgrade\r\nUpgrade: #{protocol}\r\n" \
                           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" \
                           "GET /posts HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\n\r\n")
      end
      assert_includes websocket, "/old websocket", kind
      refute_includes websocket, "/posts", kind unless kind == "varnish"
      others.each do |text|
        assert_match(%r{/old (?!h2c)}, text, kind)
        refute_includes text, "/posts", kind
      end
    end
  end

  def test_the_header_fields_of_the_rest_reach_the_client
    fields = { "content-type" => "text/plain", "surrogate-key" => "a", "cache-tag" => "b", "cache-status" => "own; hit" }
    proxies(rest: ->(_env) { [200, fields.dup, ["old"]] }) do |kind, url|
      response = get("#{url}/old")
      assert_equal fields, fields.to_h { |name, _| [name, response[name]] }, kind
    end
  end

  # The application sends the next piece when the client has the one before. HAProxy delays a piece by 0.2 seconds if more
  # of them may follow.
  def test_pieces_of_a_streamed_response_of_the_rest_are_not_delayed
    read = Queue.new
    KINDS.each do |kind|
      streaming(read) do |rest|
        with_proxy(kind, 1, "--only", "/posts", "--rest", rest) do |url|
          started_ns = Castellan::Clock.monotonic_ns
          Net::HTTP.start(URI(url).host, URI(url).port, read_timeout: 5) do |http|
            http.request_get("/old") { |response| response.read_body { read << true } }
          end
          assert_operator Castellan::Clock.monotonic_ns - started_ns, :<, 8_000_000_000, kind
        end
      end
    end
  end

  # The second path has related resources with a lifetime only; in the third the application has become different.
  def test_clients_of_nginx_do_not_wait_for_responses_that_are_not_stored
    arrived = Queue.new
    all = Queue.new
    app = lambda do |_env|
      arrived << true
      4.times { all << true } if (arrived.size % 4).zero?
      Timeout.timeout(4) { all.pop }
      [200, { "content-type" => JSON_API, "cache-control" => "public, no-cache" }, ["{}"]]
    end
    in_front_of(app) do |url|
      %w[/other /api/writers /api/posts].each { |path| assert_equal ["200"] * 4, responses(url + path, 4).map(&:code), path }
    end
  end

  def test_clients_of_nginx_wait_for_a_declared_document
    held = Queue.new
    app = lambda do |_env|
      [200, { "content-type" => JSON_API, "cache-control" => "public, s-maxage=60" }, [held.pop]]
    end
    in_front_of(app) do |url|
      threads = Array.new(8) { Thread.new { get("#{url}/api/posts", "accept-encoding" => "identity").body } }
      eventually { held.num_waiting.positive? }
      8.times { |number| held << number.to_s }
      assert_equal ["0"], threads.map(&:value).uniq
    end
  end

  private

  # nginx with a configuration that is printed from another application.
  def in_front_of(app)
    Dir.mktmpdir do |dir|
      write_files(dir, { "config.ru" => MountedApplication::RACK })
      Castellan::TestServers.puma(app, threads: 16) do |url|
        with_proxy("nginx", URI(url).port, "#{dir}/config.ru") { |base| yield base }
      end
    end
  end

  def responses(url, count) = Array.new(count) { Thread.new { get(url, "accept-encoding" => "identity") } }.map(&:value)

  # @return [String] the answer to four bytes in a WebSocket
  def ping(port)
    Socket.tcp("127.0.0.1", port) do |socket|
      socket.write("GET /cable HTTP/1.1\r\nHost: a.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
                   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
      head = socket.gets("\r\n\r\n")
      assert_includes head, " 101 "
      socket.write("ping")
      socket.read
    end
  end

  # A server that sends sixty pieces to one client.
  def streaming(read)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      socket = server.accept until socket&.gets # HAProxy checks the server with a connection without a request
      nil until socket.gets == "\r\n"
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
      60.times { socket.write("1\r\n.\r\n") && read.pop }
      socket.write("0\r\n\r\n")
    end
    yield "http://127.0.0.1:#{server.addr[1]}"
  ensure
    thread&.kill&.join
    server&.close
  end

  # @return [String] all that the server sends until it closes the connection
  def raw(port, text)
    Socket.tcp("127.0.0.1", port) do |socket|
      socket.write(text)
      Timeout.timeout(10) { socket.read }
    end
  end

  # The applications answer with the header fields that they get.
  def proxies(rest: nil, castellan: nil)
    app = lambda do |env|
      body = JSON.generate(env.select { |name, _| name.start_with?("HTTP_") }.merge("filling" => "x" * 2_000))
      fields = { "content-type" => JSON_API, "cache-control" => "public, s-maxage=60" }
      [200, fields, [body]]
    end
    Castellan::TestServers.puma(rest || app) do |rest|
      Castellan::TestServers.puma(castellan || app) do |url|
        KINDS.each { |kind| with_proxy(kind, URI(url).port, "--only", "/posts", "--rest", rest) { |base| yield kind, base } }
      end
    end
  end

  def get(url, fields = {})
    url = URI("#{url}?#{@number = @number.to_i + 1}") unless fields.key?("accept-encoding")
    Net::HTTP.get_response(URI(url), { "accept" => JSON_API, "accept-encoding" => "identity", **fields })
  end
end
