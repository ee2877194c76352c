# frozen_string_literal: true

require "test_helper"
require "active_record"
require "json"

# What Fastly's and Cloudflare's APIs are asked, by a server that answers in their place.
class PurgeApisTest < Minitest::Test
  def setup
    @requests = Queue.new
    @status = 200
  end

  def test_fastly_purges_256_keys_at_a_time
    serve do |url|
      fastly = Castellan::Purge::Fastly.new(service: "abc", token: "secret", soft: true, url: url)
      fastly.purge(Array.new(300) { |number| "tags/#{number}" })
    end
    one, two = drained
    assert_equal ["POST", "/service/abc/purge", "secret", "1"], one.values_at("REQUEST_METHOD", "PATH_INFO", "HTTP_FASTLY_KEY",
                                                                              "HTTP_FASTLY_SOFT_PURGE")
    assert_equal [256, 44], [one, two].map { |env| JSON.parse(env["body"])["surrogate_keys"].size }
  end

  def test_cloudflare_purges_100_tags_at_a_time
    serve { |url| Castellan::Purge::Cloudflare.new(zone: "z1", token: "secret", url: url).purge(Array.new(101) { |number| "tags/#{number}" }) }
    one, two = drained
    assert_equal ["POST", "/client/v4/zones/z1/purge_cache", "Bearer secret"],
                 one.values_at("REQUEST_METHOD", "PATH_INFO", "HTTP_AUTHORIZATION")
    assert_equal [100, 1], [one, two].map { |env| JSON.parse(env["body"])["tags"].size }
  end

  def test_another_status_is_an_error_that_names_it
    @status = 403
    serve do |url|
      error = assert_raises(Castellan::Purge::Error) { Castellan::Purge::Fastly.new(service: "abc", token: "no", url: url).purge(%w[a]) }
      assert_includes error.message, "403"
      refute_includes error.message, "token"
    end
  end

  def test_a_server_that_is_away_is_an_error
    error = assert_raises(Castellan::Purge::Error) { Castellan::Purge::Varnish.new("http://127.0.0.1:1").purge(%w[a]) }
    assert_includes error.message, "127.0.0.1:1 does not answer"
  end

  def test_a_url_that_is_none_is_refused
    assert_raises(Castellan::ConfigurationError) { Castellan::Purge::Varnish.new("127.0.0.1:6081") }
  end

  def test_one_proxy_needs_no_array
    source = Class.new { def self.connection_pool; end }
    proxy = Castellan::Purge::Varnish.new("http://127.0.0.1:6081")
    [proxy, [proxy]].each { |proxies| assert_equal [proxy], Castellan::Purge.new(source, proxies).proxies }
  end

  def test_proxies_that_cannot_purge_are_refused_with_an_example
    fastly = Castellan::Purge::Fastly.new(service: "abc", token: "secret")
    { [] => "an empty Array", nil => "nil", "http://127.0.0.1:6081" => '"http://127.0.0.1:6081"',
      Castellan::Purge::Varnish => "Castellan::Purge::Varnish", [fastly, :varnish] => ":varnish" }.each do |proxies, got|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Purge.new(nil, proxies) }
      assert_includes error.message, 'such as Castellan::Purge::Varnish.new("http://127.0.0.1:6081")'
      assert error.message.end_with?("; got #{got}"), error.message
    end
  end

  def test_an_invalid_option_of_a_proxy_raises_without_the_token
    empty = "must be a String that is not empty, got"
    {
      [:Fastly, { service: nil }] => "Castellan::Purge::Fastly service: #{empty} nil; write for example service: \"SU1Z0isxPaozGVKXdv0eY\"",
      [:Fastly, { token: nil }] => "Castellan::Purge::Fastly token: #{empty} nil; write for example token: ENV.fetch(\"FASTLY_TOKEN\")",
      [:Fastly, { token: "" }] => "Castellan::Purge::Fastly token: #{empty} an empty String; ",
      [:Fastly, { token: :secret }] => "Castellan::Purge::Fastly token: #{empty} an instance of Symbol; ",
      [:Fastly, { timeout: 0 }] => "a proxy's timeout: must be seconds above 0, got 0; write for example timeout: 5",
      [:Cloudflare, { zone: "" }] => "Castellan::Purge::Cloudflare zone: #{empty} \"\"; ",
      [:Cloudflare, { token: nil }] => "Castellan::Purge::Cloudflare token: #{empty} nil; " \
                                       "write for example token: ENV.fetch(\"CLOUDFLARE_TOKEN\")"
    }.each do |(name, options), message|
      valid = { token: "secret", name == :Fastly ? :service : :zone => "abc" }
      error = assert_raises(Castellan::ConfigurationError, message) { Castellan::Purge.const_get(name).new(**valid, **options) }
      assert_includes error.message, message
      refute_includes error.message, "secret"
    end
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Purge::Varnish.new("http://127.0.0.1", timeout: "2") }
    assert_includes error.message, "a proxy's timeout: must be seconds above 0, got \"2\""
  end

  def test_the_middleware_needs_its_store
    { nil => "nil", ->(_env) {} => "an instance of Proc", "redis://:secret@x" => "an instance of String" }.each do |wrong, got|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Purge::Middleware.new(wrong) }
      assert_includes error.message, "the store of Castellan::Purge::Middleware must be a store or Rails.cache, got #{got}; write "
    end
  end

  def test_an_invalid_option_of_a_purge_raises
    source = Class.new { def self.connection_pool; end }
    proxy = Castellan::Purge::Varnish.new("http://127.0.0.1:6081")
    { { again_after: 0 } => "again_after: must be seconds above 0, got 0; write for example again_after: 1",
      { again_after: "1" } => "again_after: must be seconds above 0, got \"1\"; ",
      { log: Logger.new(nil) } => "log: must respond to call, got an instance of Logger; write log: Rails.logger.method(:warn)" }
      .each do |options, message|
        error = assert_raises(Castellan::ConfigurationError, message) { Castellan::Purge.new(source, proxy, **options) }
        assert_includes error.message, "Castellan::Purge #{message}"
      end
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Purge.new(source, proxy, again_after: nil).install }
    assert_equal "Purge#install needs resources or tables:, such as PURGE.install(PostResource)", error.message
  end

  private

  def serve(&block)
    app = lambda do |env|
      @requests << env.slice("REQUEST_METHOD", "PATH_INFO", "HTTP_FASTLY_KEY", "HTTP_FASTLY_SOFT_PURGE", "HTTP_AUTHORIZATION")
                      .merge("body" => env["rack.input"].read)
      [@status, { "content-type" => "application/json" }, ["{}"]]
    end
    Castellan::TestServers.puma(app, &block)
  end

  def drained = Array.new(@requests.size) { @requests.pop }
end
