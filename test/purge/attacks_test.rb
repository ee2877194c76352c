# frozen_string_literal: true

require "test_helper"
require "rack"
require "serve/journal_requests"
require "support/printed_proxies"

# Published attacks on shared caches, through proxies with the configuration that `castellan proxy` prints. After each
# attack another client gets the response that the application itself would send.
class PurgeAttacksTest < Minitest::Test
  include PrintedProxies

  # https://portswigger.net/research/practical-web-cache-poisoning, …/web-cache-entanglement, https://cpdos.org
  POISONS = [
    *%w[X-Forwarded-Host X-Host X-Original-Host X-Forwarded-Server].map { |name| { name => "evil.org" } },
    { "Forwarded" => "host=evil.org;proto=https" }, { "X-Forwarded-Proto" => "https" },
    { "X-Forwarded-Scheme" => "https" }, { "X-Forwarded-Ssl" => "on" }, { "X-Forwarded-Port" => "1337" },
    { "X-Forwarded-Prefix" => "/evil" },
    *%w[X_Forwarded_Host X-Forwarded_Host X_Host].map { |name| { name => "evil.org" } }, # the same names for Rack
    { "X_Original_URL" => "/evil" }, { "Accept_Encoding" => "gzip" }, { "Accept_Language" => "x-evil" },
    { "X-Original-URL" => "/evil" }, { "X-Rewrite-URL" => "/evil" }, { "X-HTTP-Method-Override" => "DELETE" },
    { "Host" => "evil.org" }, { "Accept-Language" => "x-evil" }, { "Origin" => "http://evil.org" },
    { "Accept-Encoding" => "gzip" }, { "Accept-Encoding" => "evil, gzip;q=0.1" },
    { "Accept" => "application/vnd.api+json; evil=1, */*" }, { "Accept" => "text/evil" }, { "Vary" => "*" },
    { "X-Oversized" => "x" * 7_000 }, { "Range" => "bytes=0-0" }, { "If-None-Match" => "*" },
    { "If-Match" => '"evil"' },
    { "Cache-Control" => "no-cache" }, { "Authorization" => "evil" }, { "Cookie" => "evil=1" },
    { "Castellan-Stale" => "if-error" }, { "Castellan-Stale" => "failed" }, { "Castellan-Refresh" => "1" }
  ].freeze
  DECEPTIVE = %w[/posts/x.css /posts;x.js /posts%2fx.png /posts/..%2fx.css /posts?x.css /posts/ /posts].freeze

  %w[nginx varnish haproxy].each do |kind|
    define_method("test_no_attack_through_#{kind}_reaches_another_client") do
      application do |origin|
        with_proxy(kind, URI(origin).port, "--purger", "192.0.2.1") do |proxy|
          @attacks = 0
          assert_not_poisoned(proxy, origin)
          assert_not_deceived(proxy, origin)
          assert_no_fragment_for_others(proxy, origin)
          assert_keeps_cookies_apart(proxy)
          assert_no_variant_without_its_field(proxy)
          assert_equal "403", purge(proxy).code if kind == "varnish"
        end
      end
    end
  end

  private

  # The application of /echo copies the request into public documents, as frameworks do when they write URLs.
  def application(&block)
    needs :postgres
    journal = Journal.active_record(:postgres)
    journal.fill
    post = Class.new(journal.models::PostResource) { cache_control s_maxage: 600 }
    open = Castellan.app { resource post }
    private = Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"] }
      resource post, scope: ->(viewer) { viewer ? post.definition.model : post.definition.model.none }
    end
    urls = { "/echo" => method(:echo), "/cookie" => method(:cookie), "/account" => method(:account), "/api" => open, "/private" => private,
             "/fragment" => method(:fragment) }
    Castellan::TestServers.puma(Rack::URLMap.new(urls), &block)
  end

  def echo(env)
    request = Rack::Request.new(env)
    names = %w[HTTP_ACCEPT_LANGUAGE HTTP_ORIGIN HTTP_X_ORIGINAL_URL HTTP_X_HOST]
    text = [request.url, request.body&.read, *env.values_at(*names)].inspect
    [200, { "content-type" => "application/json", "cache-control" => "public, s-maxage=60",
            "vary" => "accept-language, origin" }, [text]]
  end

  # Like turbo-rails, which sends no Vary; HAProxy stores nothing with another Vary than Accept.
  def fragment(env)
    text = env.values_at("HTTP_TURBO_FRAME", "HTTP_HX_REQUEST").push(Rack::Request.new(env).body&.read).inspect
    [200, { "content-type" => "text/html", "cache-control" => "public, max-age=60", "vary" => "accept" }, [text]]
  end

  def cookie(env)
    [200, { "content-type" => "application/json", "cache-control" => "public, s-maxage=60",
            "set-cookie" => "viewer=#{env["HTTP_X_VIEWER"]}" }, ["{}"]]
  end

  # Ignores the end of the path, and does not say that its documents are private.
  def account(env)
    fields = { "content-type" => "text/html" }
    fields["cache-control"] = fields["cdn-cache-control"] = "max-age=60" if env["HTTP_AUTHORIZATION"]
    [200, fields, ["account of #{env.values_at("HTTP_AUTHORIZATION", "HTTP_COOKIE")}"]]
  end

  def assert_not_poisoned(proxy, origin)
    %w[/echo/x /api/posts /api/posts/999].product([*POISONS, :body, :chunks]).each do |path, poison|
      host = "a#{@attacks += 1}.example.org"
      fields = { "Host" => host, "Accept" => "application/vnd.api+json" }
      attack = poison.is_a?(Hash) ? fields.merge(poison) : fields
      2.times { request(proxy, path, attack, poison) }
      expected = request(origin, path, fields)
      2.times { assert_same_response expected, request(proxy, path, fields), "#{path} after #{poison}" }
      next unless path == "/api/posts"

      assert_match(/hit/i, request(proxy, path, fields)["cache-status"], poison.inspect)
    end
  end

  def assert_not_deceived(proxy, origin)
    %w[/account /private /api].product(DECEPTIVE, %w[Authorization Cookie]).each do |mount, path, name|
      host = "a#{@attacks += 1}.example.org"
      fields = { "Host" => host, "Accept" => "application/vnd.api+json" }
      own = Array.new(2) { request(proxy, mount + path, fields.merge(name => "victim")).body }
      assert_match(/victim|"id"/, own.last) if mount == "/account" || [path, name] == %w[/posts Authorization]
      expected = request(origin, mount + path, fields)
      refute_match(/victim|"id"/, expected.body) unless mount == "/api"
      2.times { assert_same_response expected, request(proxy, mount + path, fields), mount + path }
    end
  end

  def assert_no_fragment_for_others(proxy, origin)
    [{ "Turbo-Frame" => "evil" }, { "HX-Request" => "true" }, { "Turbo_Frame" => "evil" }, :body, :chunks].each do |poison|
      fields = { "Host" => "a#{@attacks += 1}.example.org", "Accept" => "*/*" }
      attack = poison.is_a?(Hash) ? fields.merge(poison) : fields
      2.times { request(proxy, "/fragment", attack, poison) }
      expected = request(origin, "/fragment", fields)
      2.times { assert_same_response expected, request(proxy, "/fragment", fields), poison.inspect }
      assert_match(/hit/i, request(proxy, "/fragment", fields)["cache-status"], poison.inspect)
      next unless poison.is_a?(Hash) && poison.keys.first.include?("-")

      assert_equal request(origin, "/fragment", attack).body, request(proxy, "/fragment", attack).body, poison.inspect
    end
  end

  # Varnish does not send the fields that Connection names, but has them in its key or compares them with Vary.
  def assert_no_variant_without_its_field(proxy)
    %w[Origin X-Forwarded-Proto Accept-Language].each do |name|
      attacked, other = Array.new(2) { "a#{@attacks += 1}.example.org" }
      fields = { "Accept" => "application/vnd.api+json", name => "https" }
      request(proxy, "/echo/x", { **fields, "Host" => attacked, "Connection" => "close, #{name}" })
      seen = [attacked, other].map { |host| request(proxy, "/echo/x", { **fields, "Host" => host }).body.sub(host, "") }
      assert_equal seen.last, seen.first, name
    end
  end

  def assert_keeps_cookies_apart(proxy)
    cookies = %w[one two].map { |viewer| request(proxy, "/cookie", { "Accept" => "*/*", "X-Viewer" => viewer })["set-cookie"] }
    assert_equal %w[viewer=one viewer=two], cookies
  end

  def assert_same_response(expected, response, message)
    assert_equal [expected.code, expected.body], [response.code, response.body], message
    assert_equal expected["content-type"].to_s, response["content-type"].to_s, message
    assert_nil response["content-encoding"], message
  end

  def request(url, path, fields, body = nil)
    fields = { "Accept-Encoding" => "identity", **fields }
    request = Net::HTTPGenericRequest.new("GET", body.is_a?(Symbol), true, path, fields)
    if body == :body
      request.body = "evil"
    elsif body == :chunks
      request["Transfer-Encoding"] = "chunked"
      request.body_stream = StringIO.new("evil")
    end
    Net::HTTP.start(URI(url).host, URI(url).port) { |http| http.request(request) }
  end

  def purge(url)
    request = Net::HTTPGenericRequest.new("PURGE", false, true, "/", { "castellan-purge" => "." })
    Net::HTTP.start(URI(url).host, URI(url).port) { |http| http.request(request) }
  end
end
