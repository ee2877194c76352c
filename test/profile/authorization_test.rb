# frozen_string_literal: true

require "test_helper"
require "castellan/profile"
require "minitest/mock"
require "rack/lint"
require "rack/mock"

class ProfileAuthorizationTest < Minitest::Test
  SECRET = "s" * 32
  HERE = { "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost:3000" }.freeze

  def middleware(**options)
    app = ->(_env) { [200, { "content-type" => "text/plain" }, ["app"]] }
    @middleware = Castellan::Profile::Middleware.new(app, environment: nil, announce: nil, **options)
  end

  def get(path = "/", **env) = Rack::MockRequest.new(@middleware).get(path, env.transform_keys(&:to_s))

  def profiled?(**env) = get(**env).headers.key?("server-timing")

  def assert_closed(**env)
    response = get(**env)
    assert_equal [200, "app", ["content-type"]], [response.status, response.body, response.headers.keys]
    page = get("/castellan", **env)
    assert_equal [200, "app", ["content-type"]], [page.status, page.body, page.headers.keys]
    assert_empty @middleware.results.latest
  end

  def test_no_request_is_authorised_without_a_configuration
    middleware
    assert_closed(**HERE.transform_keys(&:to_sym))
    assert_equal "app", get("/castellan/requests/abc").body
    assert_equal "app", get("/castellan/assets/page.css").body
  end

  def test_without_authorization_requests_reach_the_application
    app = lambda do |env|
      [404, { "x-app" => env["REQUEST_METHOD"] }, [env["PATH_INFO"], env["QUERY_STRING"], env["rack.input"].read]]
    end
    @middleware = Castellan::Profile::Middleware.new(app, environment: nil, secret: SECRET)
    %w[GET HEAD POST PUT PATCH DELETE OPTIONS].each do |method|
      ["/castellan/requests/abc?a=b", "/castellan?castellan_token=#{Castellan::Profile::Token.new("t" * 32).sign(60)}"].each do |path|
        page, own = [@middleware, app].map { |one| Rack::MockRequest.new(one).request(method, path, input: "title=new") }
        assert_equal [own.status, own.headers, own.body], [page.status, page.headers, page.body], "#{method} #{path}"
      end
    end
  end

  def test_development_is_open_to_localhost_only
    middleware(environment: "development")
    ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"].each do |address|
      assert profiled?(REMOTE_ADDR: address, HTTP_HOST: "localhost:3000"), address
    end
    %w[localhost app.localhost 127.0.0.1:9292 [::1]:80].each { |host| assert profiled?(REMOTE_ADDR: "::1", HTTP_HOST: host), host }
    assert_equal 200, get("/castellan", REMOTE_ADDR: "::1", HTTP_HOST: "localhost").status
  end

  def test_development_is_closed_to_hosts_that_resemble_localhost
    middleware(environment: "development")
    ["172.17.0.1", "10.0.0.1", "::2", "127.0.0.1.evil.example", "", nil].each do |address|
      assert_closed(REMOTE_ADDR: address, HTTP_HOST: "localhost")
    end
    %w[X_FORWARDED_FOR X_FORWARDED_PROTO FORWARDED X_REAL_IP VIA CF_CONNECTING_IP].each do |name|
      assert_closed("HTTP_#{name}": "x", **HERE.transform_keys(&:to_sym))
    end
    ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "evil.example:80\nlocalhost"].each do |host|
      assert_closed(REMOTE_ADDR: "127.0.0.1", HTTP_HOST: host)
    end
  end

  PROXY_HEADERS = %w[X-Envoy-External-Address X-Original-Forwarded-For X-Amzn-Trace-Id CF-Ray X-Forwarded-Anything Forwarded Via
                     X-Real-Ip X-Client-Ip True-Client-Ip Fastly-Client-Ip X-Cluster-Client-Ip Fly-Client-Ip CDN-Loop X-Request-Start
                     X-Appengine-Country X-Azure-Ref X-Vercel-Id X-Cloud-Trace-Context X-ARR-SSL X-Varnish CloudFront-Viewer-Country
                     X-Nf-Client-Connection-Ip Surrogate-Capability Ngrok-Auth-User-Email Tailscale-User-Login X-Original-Url
                     X-Remote-Addr Front-End-Https X-Url-Scheme X-Scheme X-Request-Id Akamai-Origin-Hop X-Proxyuser-Ip].freeze

  def test_development_is_closed_to_each_header_that_a_proxy_adds
    middleware(environment: "development")
    PROXY_HEADERS.each { |name| assert_closed("HTTP_#{name.upcase.tr("-", "_")}": "1", **HERE.transform_keys(&:to_sym)) }
  end

  def test_development_stays_open_to_the_headers_of_browsers_and_api_clients
    middleware(environment: "development")
    %w[Accept Accept-Language Authorization Content-Type Cookie If-None-Match Origin Referer Sec-Fetch-Site User-Agent DNT Castellan-Profile
       Upgrade-Insecure-Requests X-Requested-With X-CSRF-Token X-Api-Key Idempotency-Key Traceparent Cache-Control].each do |name|
      assert profiled?("HTTP_#{name.upcase.tr("-", "_")}": "1", **HERE.transform_keys(&:to_sym)), name
    end
  end

  # A proxy on this machine makes every peer loopback; this is what nginx sends with nothing but a proxy_pass.
  def test_development_is_closed_to_a_local_proxy_without_headers
    middleware(environment: "development")
    proxied = { REMOTE_ADDR: "127.0.0.1", HTTP_HOST: "127.0.0.1:3000", HTTP_CONNECTION: "close", SERVER_PROTOCOL: "HTTP/1.0" }
    assert_closed(**proxied)
    assert_closed(**proxied, SERVER_PROTOCOL: "HTTP/1.1") # WEBrick says so of every request
    assert profiled?(**proxied, HTTP_CONNECTION: "keep-alive")
    assert profiled?(**proxied.except(:HTTP_CONNECTION))
  end

  def test_other_environments_are_closed_to_localhost
    %w[production test staging].each do |environment|
      middleware(environment: environment, secret: SECRET)
      assert_closed(**HERE.transform_keys(&:to_sym))
    end
  end

  def test_a_block_decides
    middleware(authorize: ->(env) { env["HTTP_X_ADMIN"] == "yes" }, environment: "development")
    assert profiled?(HTTP_X_ADMIN: "yes")
    refute profiled?(**HERE.transform_keys(&:to_sym))
    app = ->(_env) { [200, {}, []] }
    @middleware = Castellan::Profile::Middleware.new(app, environment: nil) { |env| env["HTTP_X_ADMIN"] == "yes" }
    assert profiled?(HTTP_X_ADMIN: "yes")
  end

  def test_a_block_that_raises_authorises_no_request
    errors = StringIO.new
    middleware(authorize: ->(_env) { raise "no session" })
    [nil, Logger.new(StringIO.new, level: Logger::FATAL)].each do |logger| # Sinatra::Base has a logger that takes no warnings
      errors.truncate(0)
      assert_equal "app", get("/", "rack.errors": errors, "rack.logger": logger).body
      assert_includes errors.string, "could not authorise"
    end
  end

  def test_a_token_in_the_header_or_the_cookie
    middleware(secret: SECRET)
    token = Castellan::Profile::Token.new(SECRET).sign(60)
    assert profiled?(HTTP_CASTELLAN_TOKEN: token)
    assert profiled?(HTTP_COOKIE: "a=1; castellan_token=#{token}; b=2")
    assert_equal 200, get("/castellan", HTTP_CASTELLAN_TOKEN: token).status
    refute profiled?(HTTP_CASTELLAN_TOKEN: "#{token}0")
    refute profiled?(HTTP_COOKIE: "not_castellan_token=#{token}")
    refute_includes @middleware.results.latest.first.to_h.to_s, token
  end

  def test_a_token_is_not_taken_from_an_ordinary_link
    middleware(secret: SECRET)
    refute get("/?castellan_token=#{Castellan::Profile::Token.new(SECRET).sign(60)}").headers.key?("server-timing")
  end

  def test_a_link_becomes_a_cookie_and_the_token_leaves_the_address
    middleware(secret: SECRET)
    link = @middleware.link("/castellan/requests/abc?a=1")
    response = get(link, SCRIPT_NAME: "/api", "rack.url_scheme": "https")
    assert_equal [303, "/api/castellan/requests/abc?a=1", "no-store"],
                 [response.status, *response.headers.values_at("location", "cache-control")]
    cookie = response.headers["set-cookie"]
    assert_match(%r{\Acastellan_token=\S+; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=\d+\z}, cookie)
    assert profiled?(HTTP_COOKIE: cookie[/\A[^;]+/])
  end

  def test_a_link_puts_no_lines_into_the_header
    middleware(secret: SECRET)
    token = Castellan::Profile::Token.new(SECRET).sign(60)
    response = get("/castellan", PATH_INFO: "/castellan/a\r\nx: 1", QUERY_STRING: "castellan_token=#{token}&a=\n\xFF")
    assert_equal "/castellan/a%0D%0Ax:%201?a=%0A%FF", response.headers["location"]
  end

  def test_a_link_never_leads_to_another_host
    middleware(secret: SECRET)
    token = Castellan::Profile::Token.new(SECRET).sign(60)
    { "//evil.example" => "/evil.example", "/\\evil.example" => "/%5Cevil.example", "https://evil.example" => "/https://evil.example",
      "\\\\evil.example" => "/%5C%5Cevil.example", "" => "" }.each do |mount, path|
      response = get("/castellan", SCRIPT_NAME: mount, QUERY_STRING: "castellan_token=#{token}")
      assert_equal [303, "#{path}/castellan"], [response.status, response.headers["location"]]
      page = get("/castellan", SCRIPT_NAME: mount, HTTP_CASTELLAN_TOKEN: token).body
      refute_match(%r{(?:href|src|action)="(?:/[/\\]|\\|https:)}, page)
    end
  end

  def test_a_bad_link_lets_no_client_in
    middleware(secret: SECRET)
    ["x", "1.#{"a" * 64}", "%00", ""].each { |token| assert_equal "app", get("/castellan?castellan_token=#{token}").body }
  end

  def test_invalid_bytes_are_not_a_token
    middleware(secret: SECRET)
    assert_equal "app", get("/castellan", QUERY_STRING: "castellan_token=\xFF").body
    errors = StringIO.new
    refute profiled?(HTTP_COOKIE: "castellan_token=\xFF; \xFE", "rack.errors": errors)
    assert_empty errors.string, "nobody fills the log"
  end

  def test_a_token_expires
    token = Castellan::Profile::Token.new(SECRET)
    text = token.sign(60)
    assert token.valid?(text)
    Castellan::Clock.stub(:now, Time.now + 61) { refute token.valid?(text) }
    refute token.valid?(token.sign(0))
  end

  def test_a_token_cannot_be_made_longer_or_of_another_secret
    token = Castellan::Profile::Token.new(SECRET)
    text = token.sign(60)
    refute token.valid?(text.sub(/\A\d+/) { |ends| (ends.to_i + 1).to_s })
    refute token.valid?("0#{text}")
    refute token.valid?(Castellan::Profile::Token.new("t" * 32).sign(60))
    [nil, "", ".", "1.2", "é.#{"a" * 64}", "\xFF", "#{text}\n"].each { |wrong| refute token.valid?(wrong) }
  end

  def test_a_short_secret_raises_at_boot
    assert_includes assert_raises(Castellan::ConfigurationError) { middleware(secret: "short") }.message, "at least 32 bytes, got 5"
    refute_includes Castellan::Profile::Token.new(SECRET).inspect, SECRET
  end

  def test_boot_prints_a_signed_link_in_development
    said = []
    middleware(environment: "development", announce: ->(text) { said << text })
    link = said.first[%r{/castellan\?\S+}]
    cookie = get(link, REMOTE_ADDR: "172.17.0.1").headers["set-cookie"]
    assert_equal 200, get("/castellan", REMOTE_ADDR: "172.17.0.1", HTTP_COOKIE: cookie).status
    middleware(environment: "production", announce: ->(text) { said << text })
    assert_equal 1, said.size
  end

  def test_processes_that_share_a_store_share_the_link_of_development
    store = Castellan::Store::MemoryStore.new
    link = middleware(environment: "development", store: store).link
    middleware(environment: "development", store: store)
    assert_equal 303, get(link).status
  end

  def test_a_link_needs_a_secret
    assert_includes assert_raises(Castellan::ConfigurationError) { middleware.link }.message, "need secret:"
  end

  def test_openssl_is_not_needed_until_there_is_a_token
    program = "require 'castellan/profile'; app = ->(_) { [200, {}, []] }; " \
              "app = Castellan::Profile::Middleware.new(app, secret: 's' * 32, environment: nil); " \
              "app.call('PATH_INFO' => '/'); exit(defined?(OpenSSL) ? 1 : 0)"
    assert system(RbConfig.ruby, "-I#{ROOT}/lib", "-e", program)
  end

  def test_an_unauthorised_request_costs_at_most_one_object
    middleware(secret: SECRET)
    inner = ->(_env) {}
    app = Castellan::Profile::Middleware.new(inner, environment: nil, secret: SECRET)
    env = Rack::MockRequest.env_for("/users?page=1", "HTTP_COOKIE" => "a=1; b=2", "REMOTE_ADDR" => "10.0.0.1")
    100.times { app.call(env) }
    before = GC.stat(:total_allocated_objects)
    1_000.times { app.call(env) }
    assert_operator GC.stat(:total_allocated_objects) - before, :<=, 1_010
  end
end
