# frozen_string_literal: true

require "test_helper"
require "castellan/load_test"
require "openssl"
require "socket"

class LoadTestTLSTest < Minitest::Test
  OK = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

  def test_an_https_url_is_loaded_over_tls
    with_tls_server do |url|
      result = Castellan::LoadTest.run(url, clients: 2, repetitions: 5, verify: false)
      assert_equal [10, 50, 2], [result.successful, result.transferred_bytes, result.connections]
    end
  end

  def test_a_self_signed_certificate_is_a_tls_failure
    with_tls_server do |url|
      result = Castellan::LoadTest.run(url, clients: 1, repetitions: 2)
      assert_equal [0, 2], [result.successful, result.failed]
      assert_match(/TLS failed: .*certificate verify failed/, result.reasons.keys.first)
    end
  end

  def test_a_server_without_tls_is_a_tls_failure
    with_server(TCPServer.new("127.0.0.1", 0), greeting: "HTTP/1.1 400 Bad Request\r\n\r\n") do |url|
      result = Castellan::LoadTest.run(url, clients: 1, repetitions: 1)
      assert_match(/TLS failed: /, result.reasons.keys.first)
    end
  end

  def test_a_handshake_that_does_not_end_times_out
    with_server(TCPServer.new("127.0.0.1", 0), greeting: nil) do |url|
      result = Castellan::LoadTest.run(url, clients: 1, repetitions: 1, timeout: 0.1)
      assert_equal({ "timed out" => 1 }, result.reasons)
    end
  end

  def test_openssl_is_not_loaded_for_http
    program = "require 'castellan/load_test'; Castellan::LoadTest.run('http://127.0.0.1:#{free_port}/', clients: 1, repetitions: 1); " \
              "print $LOADED_FEATURES.grep(%r{/openssl}).size"
    assert_equal "0", IO.popen([Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", program], &:read)
  end

  private

  def with_tls_server(&block)
    context = OpenSSL::SSL::SSLContext.new
    context.key = OpenSSL::PKey::EC.generate("prime256v1")
    context.cert = certificate(context.key)
    with_server(OpenSSL::SSL::SSLServer.new(TCPServer.new("127.0.0.1", 0), context), greeting: nil, &block)
  end

  def with_server(server, greeting:)
    threads = []
    threads << Thread.new { accept(server, greeting, threads) }
    port = (server.respond_to?(:to_io) ? server.to_io : server).addr[1]
    yield "https://127.0.0.1:#{port}/"
  ensure
    threads.each(&:kill).each(&:join)
    server.close
  end

  def accept(server, greeting, threads)
    loop do
      socket = server.accept
      threads << Thread.new { serve(socket, greeting) }
    rescue OpenSSL::SSL::SSLError, SystemCallError
      next # a client that refuses the certificate
    end
  end

  def serve(socket, greeting)
    socket.write(greeting) if greeting
    socket.write(OK) while socket.gets("\r\n\r\n")
  rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  ensure
    socket.close
  end

  def certificate(key)
    OpenSSL::X509::Certificate.new.tap do |certificate|
      certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=127.0.0.1")
      certificate.public_key = key
      certificate.serial = 1
      certificate.not_before = Time.now - 60
      certificate.not_after = Time.now + 3_600
      certificate.sign(key, "SHA256")
    end
  end
end
