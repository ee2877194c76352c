# frozen_string_literal: true

require "test_helper"
require "support/printed_proxies"

# What the application of Castellan and the one of `--rest` get from each proxy, and what clients get from them.
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

  private

  # The applications answer with the header fields that they get.
  def proxies
    app = lambda do |env|
      body = JSON.generate(env.select { |name, _| name.start_with?("HTTP_") }.merge("filling" => "x" * 2_000))
      fields = { "content-type" => JSON_API, "cache-control" => "public, s-maxage=60" }
      [200, fields, [body]]
    end
    Castellan::TestServers.puma(app) do |rest|
      Castellan::TestServers.puma(app) do |url|
        KINDS.each { |kind| with_proxy(kind, URI(url).port, "--only", "/posts", "--rest", rest) { |base| yield kind, base } }
      end
    end
  end

  def get(url, fields = {})
    url = URI("#{url}?#{@number = @number.to_i + 1}") unless fields.key?("accept-encoding")
    Net::HTTP.get_response(URI(url), { "accept" => JSON_API, "accept-encoding" => "identity", **fields })
  end
end
