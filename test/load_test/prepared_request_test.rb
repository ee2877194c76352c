# frozen_string_literal: true

require "test_helper"
require "castellan/load_test"

class LoadTestPreparedRequestTest < Minitest::Test
  def test_bytes_are_those_of_the_request
    assert_equal "GET /users?page=2 HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nUser-Agent: castellan\r\nAccept: application/json\r\n\r\n",
                 request("http://127.0.0.1:3000/users?page=2#top", headers: { "Accept" => "application/json" }).bytes
  end

  def test_a_given_header_replaces_the_default_whatever_its_case
    bytes = request("http://localhost/", headers: { "host" => "api.example.com" }).bytes
    assert_includes bytes, "host: api.example.com\r\n"
    refute_includes bytes, "localhost"
  end

  def test_without_keep_alive_it_sends_connection_close
    assert_includes request("http://localhost/", keep_alive: false).bytes, "\r\nConnection: close\r\n"
  end

  def test_an_ipv6_address_is_bracketed_in_the_header_only
    request = request("http://[::1]:9292/")
    assert_equal "::1", request.host
    assert_includes request.bytes, "Host: [::1]:9292\r\n"
  end

  def test_user_and_password_become_a_header
    assert_includes request("http://ann:a%20b@localhost/").bytes, "Authorization: Basic #{["ann:a b"].pack("m0")}\r\n"
  end

  def test_a_url_without_a_scheme_names_the_fix
    { "localhost:3000/users" => "http://localhost:3000/users", "ftp://example.com/x" => "http://example.com/x" }.each do |given, better|
      assert_includes wrong(given), "write #{better}"
    end
  end

  def test_an_invalid_url_raises
    ["", "http://", "http:///users", "http://local host/", "javascript:alert(1)", "file:///etc/passwd"].each do |url|
      assert_includes wrong(url), "URL"
    end
  end

  def test_a_header_cannot_contain_another_one
    error = assert_raises(Castellan::ConfigurationError) { request("http://localhost/", headers: { "X" => "1\r\nY: 2" }) }
    assert_includes error.message, "line break"
    assert_raises(Castellan::ConfigurationError) { request("http://localhost/", headers: { "X: 1\r\nY" => "2" }) }
  end

  def test_a_load_test_does_not_write
    error = assert_raises(Castellan::ConfigurationError) { request("http://localhost/", http_method: "POST") }
    assert_includes error.message, "GET or HEAD"
  end

  private

  def request(url, **options) = Castellan::LoadTest::PreparedRequest.new(url, **options)
  def wrong(url) = assert_raises(Castellan::ConfigurationError, url) { request(url) }.message
end
