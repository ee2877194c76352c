# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/mock_request"
require "socket"
require "document/library"

# Invalid bytes anywhere in a request are a 4xx with a JSON body, never an exception.
class ClientBytesTest < Minitest::Test
  BYTES = ["text/h\xE9", "\xFF\xFE", "\xC3", "a\0b", "application/vnd.api+json; profile=\"\xE9\"", "application/vnd.api+json; \xE9=1",
           "\xF0\x9F\x8F", "*/\xE9", "\xC3\xA9"].freeze
  ENCODINGS = [Encoding::BINARY, Encoding::UTF_8, Encoding::US_ASCII, Encoding::ISO_8859_1].freeze
  FIELDS = %w[HTTP_ACCEPT CONTENT_TYPE HTTP_IF_NONE_MATCH HTTP_IF_MATCH PATH_INFO SCRIPT_NAME QUERY_STRING].freeze

  def setup = library.fill

  FIELDS.each do |field|
    define_method("test_bytes_in_#{field.downcase}_are_never_an_exception") do
      BYTES.product(ENCODINGS).each do |bytes, encoding|
        value = bytes.dup.force_encoding(encoding)
        value = "/".dup.force_encoding(encoding) + value if %w[PATH_INFO SCRIPT_NAME].include?(field)
        answered(Rack::MockRequest.env_for("/articles").merge(field => value), "#{field}: #{value.inspect} #{encoding}")
      end
    end
  end

  def test_an_invalid_accept_header_is_406_and_a_content_type_415
    assert_equal 406, answered(Rack::MockRequest.env_for("/articles", "HTTP_ACCEPT" => "text/h\xE9".b))
    content_type = "application/vnd.api+json; charset=\"\xE9\"".b
    assert_equal 415, answered(Rack::MockRequest.env_for("/articles", "CONTENT_TYPE" => content_type))
  end

  def test_an_invalid_path_is_404_and_a_script_name_400
    assert_equal 404, answered(Rack::MockRequest.env_for("/articles").merge("PATH_INFO" => "/articles/\xFF"))
    assert_equal 404, answered(Rack::MockRequest.env_for("/articles").merge("PATH_INFO" => "/\xE9"))
    assert_equal 400, answered(Rack::MockRequest.env_for("/articles").merge("SCRIPT_NAME" => "/\xE9"))
  end

  def test_an_invalid_token_is_401_before_a_block_looks_it_up
    models = library.models
    looked_up = []
    app = Castellan.app do
      authenticate { |env| looked_up << env["HTTP_AUTHORIZATION"] }
      resource models::ArticleResource
    end
    status = ->(token) { app.call(Rack::MockRequest.env_for("/articles", "HTTP_AUTHORIZATION" => token)).first }
    assert_equal [401, 401, 200], [status.call("Bearer \xFF".b), status.call("Bearer \xE9"), status.call("Bearer caf\u00e9")]
    assert_equal ["Bearer caf\u00e9"], looked_up
  end

  def test_page_links_never_point_to_another_host
    env = Rack::MockRequest.env_for("/articles").merge("SCRIPT_NAME" => "//evil.example")
    links = JSON.parse(app.call(env).last.to_enum.to_a.join)["links"]
    assert_match %r{\A/evil.example/articles\?}, links["first"]
  end

  def test_a_real_server_answers_raw_bytes_with_4xx_and_json
    Castellan::TestServers.puma(app) do |base|
      port = URI(base).port
      { "GET /articles HTTP/1.1\r\nAccept: text/h\xE9" => 406, "GET /articles/%FF HTTP/1.1" => 404, "GET /%E9 HTTP/1.1" => 404,
        "GET /articles HTTP/1.1\r\nContent-Type: application/vnd.api+json; charset=\"\xE9\"" => 415,
        "GET /articles?include=%FF HTTP/1.1" => 400, "GET /articles?%FF=1 HTTP/1.1" => 400,
        "GET /articles HTTP/1.1\r\nIf-None-Match: \"\xE9\xFF" => 200 }.each do |request, status|
        response = raw(port, request)
        assert_equal status, response[%r{\AHTTP/1.1 (\d+)}, 1].to_i, request.inspect
        assert JSON.parse(response.split("\r\n\r\n", 2).last.force_encoding(Encoding::UTF_8))
      end
    end
  end

  private

  def library = Library.active_record(:sqlite)

  def app
    models = library.models
    @app ||= Castellan.app { resource models::ArticleResource }
  end

  # @return [Integer] the status of a response whose body is JSON
  def answered(env, told = nil)
    status, headers, body = app.call(env)
    assert_includes [200, 304, 400, 404, 406, 412, 415], status, told
    text = body.to_enum.to_a.join
    assert JSON.parse(text), told unless status == 304
    headers.each_value { |value| assert value.b.ascii_only?, told }
    status
  end

  def raw(port, request)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write("#{request}\r\nHost: localhost\r\nConnection: close\r\n\r\n".b)
    socket.read
  ensure
    socket&.close
  end
end
