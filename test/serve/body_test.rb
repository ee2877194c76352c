# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/etag"
require "rack/mock_request"
require "document/library"

class BodyTest < Minitest::Test
  LONG = "é" * Castellan::Serve::Endpoint::Body::LONG

  def test_a_short_document_is_written_together_with_its_header_fields
    assert_equal ["{}"], Castellan::Serve::Endpoint::Body.of("{}")
  end

  # Puma copies the strings of an Array.
  def test_a_long_document_is_written_without_a_copy
    body = Castellan::Serve::Endpoint::Body.of(LONG)
    refute_kind_of Array, body
    assert_equal [LONG.object_id], body.enum_for(:each).map(&:object_id)
    assert_predicate body, :frozen?
  end

  def test_rack_and_its_middleware_read_it
    long = ->(_env) { [200, { "content-type" => "text/plain" }, Castellan::Serve::Endpoint::Body.of(LONG)] }
    app = Rack::Lint.new(Rack::ETag.new(Rack::Lint.new(long)))
    response = Rack::MockRequest.new(app).get("/")
    assert_equal [LONG.b, true], [response.body.b, response.headers.key?("etag")]
  end
end
