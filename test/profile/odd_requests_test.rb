# frozen_string_literal: true

require "test_helper"
require "castellan/profile"
require "rack"

# Requests and responses of bytes that nobody expects: each is answered as the application did, is profiled, and can be seen.
class ProfileOddRequestsTest < Minitest::Test
  PIECES = ["", "a", "\u00e9", "\xFF\xFE".b, "%", "%00", "<script>alert(1)</script>", "'\"", "\0", "a" * 5_000, "&=;", "[[]]", "\r\nX: y",
            "profile=memroy", "\u{1F600}", "\xE9".dup.force_encoding(Encoding::ISO_8859_1)].freeze
  PAGES = ["", "/requests/ID", "/requests/ID.html"].freeze
  ASKED = { "rack.url_scheme" => "http", "HTTP_HOST" => "localhost", "REQUEST_METHOD" => "GET", "QUERY_STRING" => "" }.freeze

  def setup
    super
    @random = Random.new(Minitest.seed)
    @log = StringIO.new
  end

  def piece = PIECES.sample(random: @random)

  def environment
    { "REQUEST_METHOD" => ["GET", piece].sample(random: @random), "SCRIPT_NAME" => piece, "PATH_INFO" => "/#{piece.b}".b,
      "QUERY_STRING" => "a=#{piece.b}&".b << piece.b, "HTTP_HOST" => piece, "HTTP_USER_AGENT" => piece, "CONTENT_TYPE" => piece,
      "HTTP_CASTELLAN_PROFILE" => [nil, "off?", piece].sample(random: @random), "rack.errors" => @log,
      "action_dispatch.request.path_parameters" => [nil, { token: piece }, { controller: piece, action: :x }].sample(random: @random),
      "castellan.endpoint" => [nil, piece].sample(random: @random) }.compact
  end

  def test_any_bytes
    60.times do
      answer = [200, { "x" => piece }, [piece]].freeze
      middleware = Castellan::Profile::Middleware.new(->(_env) { answer }, authorize: ->(_env) { true }, environment: "test")
      asked = environment
      status, headers, body = middleware.call(asked)
      assert_equal answer, [status, headers.except("server-timing", "cache-control"), body], asked.inspect
      see(middleware, asked)
    end
    assert_empty @log.string
  end

  private

  def see(middleware, asked)
    id = middleware.results.latest.fetch(0).id
    PAGES.each do |page|
      status, _headers, body = middleware.call(ASKED.merge("PATH_INFO" => "/castellan#{page.sub("ID", id)}", "rack.errors" => @log))
      assert_equal 200, status, asked.inspect
      refute_includes body.join, "<script>alert", asked.inspect
    end
  end
end
