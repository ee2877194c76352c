# frozen_string_literal: true

require "test_helper"
require "open3"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "castellan/rate_limit"
require "document/library"

class RateLimitTest < Minitest::Test
  YEAR = 365 * 86_400

  def test_each_token_has_its_own_limit
    limit(limit: 2, by: :token)
    assert_equal [200, 200, 429], Array.new(3) { get("HTTP_AUTHORIZATION" => "Bearer a").status }
    assert_equal 200, get("HTTP_AUTHORIZATION" => "Bearer b").status
    response = get("HTTP_AUTHORIZATION" => "Bearer a")
    assert_equal "429", JSON.parse(response.body)["errors"].first["status"]
    assert_includes 1..YEAR, response["retry-after"].to_i
    assert_match(/\A"default";r=0;t=\d+\z/, response["ratelimit"])
  end

  def test_a_token_that_is_not_utf8_counts_as_any_other
    app = Castellan::RateLimit.new(->(_env) { [200, {}, []] }, limit: 1, period: YEAR, by: :token, store: Castellan::Store::MemoryStore.new)
    statuses = ["Bearer \xE9", "bearer  \xE9".b, "Bearer \xE8"].map do |token|
      app.call(Rack::MockRequest.env_for("/", "HTTP_AUTHORIZATION" => token)).first
    end
    assert_equal [200, 429, 200], statuses
  end

  def test_a_refused_head_has_no_body
    limit(limit: 1)
    get
    response = get("REQUEST_METHOD" => "HEAD")
    assert_equal [429, ""], [response.status, response.body]
  end

  def test_responses_have_the_remaining_requests
    limit(limit: 3)
    response = get
    assert_equal [%("default";q=3;w=#{YEAR}), "2"], [response["ratelimit-policy"], response["ratelimit"][/r=(\d+)/, 1]]
  end

  def test_a_response_after_the_end_of_its_period_has_no_time_to_wait
    now = 60_000
    limit(limit: 1, period: 60) { now += 70 }
    Castellan::Clock.stub(:now, -> { Time.at(now) }) do
      assert_match(/r=0;t=0\z/, get["ratelimit"])
      now = 60_050
      refused = get
      assert_equal [429, "10"], [refused.status, refused["retry-after"]]
      assert_match(/r=0;t=10\z/, refused["ratelimit"])
    end
  end

  def test_invented_tokens_are_limited_by_address
    limit(limit: 2)
    assert_equal [200, 200, 429], %w[a b c].map { |token| get("HTTP_AUTHORIZATION" => "Bearer #{token}").status }
  end

  def test_a_request_is_one_operation_of_the_store_whatever_it_costs
    calls = []
    store = Castellan::Store::MemoryStore.new
    %i[increment write_multi].each do |name|
      store.define_singleton_method(name) do |*arguments, **options|
        calls << name
        super(*arguments, **options)
      end
    end
    limit(limit: 200, cost: 100, store: store)
    assert_equal [200, 200, 429], Array.new(3) { get.status }
    assert_equal %i[increment] * 3, calls
  end

  def test_an_ipv6_network_counts_as_one_client
    limit(limit: 1, by: :address)
    assert_equal [200, 429, 200], %w[2001:db8::1 2001:db8::2 2001:db8:0:1::1].map { |address| get("REMOTE_ADDR" => address).status }
    assert_equal [200, 429], ["10.9.9.9", "::ffff:10.9.9.9"].map { |address| get("REMOTE_ADDR" => address).status }
  end

  def test_only_trusted_proxies_name_the_client
    limit(limit: 1, by: :address)
    forged = %w[1.1.1.1 2.2.2.2].map { |address| get("REMOTE_ADDR" => "9.9.9.9", "HTTP_X_FORWARDED_FOR" => address).status }
    assert_equal [200, 429], forged
    through_proxy = %w[1.1.1.1 2.2.2.2].map { |address| get("REMOTE_ADDR" => "127.0.0.1", "HTTP_X_FORWARDED_FOR" => address).status }
    assert_equal [200, 200], through_proxy
  end

  def test_a_proxy_whose_ipv4_address_is_written_as_ipv6_is_trusted
    limit(limit: 1)
    statuses = %w[8.8.8.8 8.8.4.4 8.8.8.8].map do |address|
      get("REMOTE_ADDR" => "::ffff:10.0.0.1", "HTTP_X_FORWARDED_FOR" => "#{address}, ::ffff:10.0.0.2").status
    end
    assert_equal [200, 200, 429], statuses
    forged = %w[1.1.1.1 2.2.2.2].map { |address| get("REMOTE_ADDR" => "::ffff:9.9.9.9", "HTTP_X_FORWARDED_FOR" => address).status }
    assert_equal [200, 429], forged
  end

  def test_a_client_behind_a_proxy_cannot_choose_its_address_with_forwarded
    limit(limit: 1)
    statuses = %w[8.8.8.8 8.8.4.4].map do |address|
      get("REMOTE_ADDR" => "10.0.0.1", "HTTP_X_FORWARDED_FOR" => "203.0.113.9", "HTTP_FORWARDED" => "for=#{address}").status
    end
    assert_equal [200, 429], statuses
  end

  # A proxy would send what is left for one client to others.
  def test_responses_that_a_shared_cache_may_store_have_no_fields
    { "public, s-maxage=60" => nil, "max-age=60" => nil, "public, no-cache" => "r", "private, max-age=60" => "r", "max-age=0" => "r" }
      .each do |control, expected|
        limit(limit: 9, headers: { "cache-control" => control })
        expected ? assert(get["ratelimit"], control) : assert_nil(get["ratelimit"], control)
      end
    limit(limit: 9, headers: { "cdn-cache-control" => "max-age=60" })
    assert_nil get["ratelimit-policy"]
  end

  def test_spellings_of_a_token_are_one_client
    limit(limit: 1, by: :token)
    statuses = ["Bearer a", "bearer a", "Bearer  a", "Bearer A"].map { |field| get("HTTP_AUTHORIZATION" => field).status }
    assert_equal [200, 429, 429, 200], statuses
  end

  def test_includes_and_large_pages_cost_more
    limit(limit: 10)
    get("QUERY_STRING" => "include=a,b.c&page[size]=300")
    assert_equal "3", get["ratelimit"][/r=(\d+)/, 1]
    assert_equal 200, get("QUERY_STRING" => "page[%").status
  end

  def test_a_request_to_an_app_costs_what_its_plan_reads
    app = Library.active_record(:sqlite).models.then do |models|
      comments = Class.new(models::CommentResource) { page size: 20, max_size: 500 }
      articles = Class.new(models::ArticleResource) { has_many :comments, resource: comments }
      Castellan.app { resource articles, at: "articles" }
    end
    asked = { "/api/articles" => 1, "/api/articles?include=author,tags" => 3, "/api/articles/1?include=author" => 2,
              "/api/articles?include=authors" => 1, "/api/articles?page=1&page%5Bsize%5D=2" => 1, "/api/articles/1/author" => 1,
              "/api/articles/1/author?include=articles" => 2, "/api/articles/1/comments?page%5Bsize%5D=250" => 3,
              "/api/articles/1/relationships/tags" => 1, "/api/articles/1/nothing" => 1,
              "/api/%FF" => 1, "/" => 1 }
    asked.each do |path, cost|
      request = Rack::Request.new(Rack::MockRequest.env_for(path))
      assert_equal cost, app.cost(request, at: "/api"), path
    end
    limit(limit: 10, cost: ->(request) { app.cost(request) })
    assert_equal "7", get("PATH_INFO" => "/articles", "QUERY_STRING" => "include=author,tags")["ratelimit"][/r=(\d+)/, 1]
  end

  def test_the_body_is_left_to_the_application
    @app = Castellan::RateLimit.new(->(env) { [200, {}, [env["rack.input"].read]] }, limit: 9, period: YEAR,
                                                                                     store: Castellan::Store::MemoryStore.new)
    form = { "REQUEST_METHOD" => "POST", "CONTENT_TYPE" => "application/x-www-form-urlencoded", "rack.input" => StringIO.new("include=a") }
    assert_equal "include=a", get(**form).body
  end

  def test_a_block_chooses_the_client_and_nil_is_not_limited
    limit(limit: 1, by: ->(request) { request.params["user"] }, cost: 1)
    assert_equal [200, 200, 200, 429], ["", "", "user=1", "user=1"].map { |query| get("QUERY_STRING" => query).status }
  end

  def test_a_record_is_a_client_by_class_and_id
    user = Struct.new(:id)
    limit(limit: 1, by: ->(request) { user.new(request.params["user"]) })
    assert_equal [200, 429, 200], %w[1 1 2].map { |id| get("QUERY_STRING" => "user=#{id}").status }
  end

  def test_each_of_two_limits_tells_what_remains
    limit(limit: 1, name: "inner")
    @app = Castellan::RateLimit.new(@app, limit: 10, period: YEAR, name: "outer", store: Castellan::Store::MemoryStore.new)
    get
    response = get
    assert_equal 429, response.status
    assert_equal [%w[inner 0], %w[outer 8]], response["ratelimit"].scan(/"(\w+)";r=(\d+)/)
    assert_equal %("inner";q=1;w=#{YEAR}, "outer";q=10;w=#{YEAR}), response["ratelimit-policy"]
  end

  def test_a_store_that_fails_lets_requests_pass
    log = []
    store = Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:1", timeout: 0.05)
    limit(limit: 1, store: store, log: ->(line) { log << line })
    assert_equal [200, 200, 200], Array.new(3) { get.status }
    assert_equal 1, log.size
  end

  def test_while_redis_is_stopped_requests_pass_after_one_wait_and_one_line_is_logged
    needs :redis
    server = Castellan::TestServers.start_redis
    log = []
    store = Castellan::Store::RedisStore.new(url: "redis://127.0.0.1:#{server.port}/0", timeout: 1)
    limit(limit: 100, cost: 100, store: store, log: log.method(:<<))
    get
    Process.kill(:STOP, server.pid)
    statuses, milliseconds = timed { Array.new(6) { get.status } }
    assert_equal [200] * 6, statuses
    assert_operator milliseconds, :<, 4_000, "six requests, of which the first waits a second"
    assert_equal 1, log.size, log.inspect
    assert_includes log.first, "requests are not counted"
  end

  def test_processes_share_the_limit_in_redis
    needs :redis
    url = Castellan::TestServers.redis_url
    assert_shared_limit { Castellan::Store::RedisStore.new(url: url, timeout: 5, namespace: "limit #{object_id}") }
  end

  def test_processes_share_the_limit_in_memcached
    needs :memcached
    servers = Castellan::TestServers.memcached_url.delete_prefix("memcached://")
    namespace = "limit#{object_id}"
    assert_shared_limit { Castellan::Store::MemcachedStore.new(servers, timeout: 5, namespace: namespace) }
  end

  def test_rails_cache_counts_requests
    require "active_support/cache"
    limit(limit: 1, store: ActiveSupport::Cache::MemoryStore.new)
    assert_equal [200, 429], Array.new(2) { get.status }
  end

  def test_the_default_store_is_that_of_rack_attack
    require "active_support/cache"
    Rack::Attack.cache.store = ActiveSupport::Cache::MemoryStore.new
    limit(limit: 1, store: nil)
    assert_equal [200, 429], Array.new(2) { get.status }
  ensure
    Rack::Attack.cache.store = nil
  end

  def test_a_limit_without_a_store_raises_with_the_correction
    error = assert_raises(Castellan::ConfigurationError) { limit(limit: 1, store: nil) }
    assert_includes error.message, "store: must be a store or Rails.cache, got nil; write for example Castellan::"
  end

  def test_mistakes_are_refused
    [{ limit: 0, period: 1 }, { limit: 1, period: 0.5 }, { limit: 1, period: 1, by: :cookie }].each do |options|
      assert_raises(Castellan::ConfigurationError) { limit(**options) }
    end
  end

  def test_an_invalid_option_raises_with_an_example
    name = "name: must be a String of printable ASCII without \" and \\, got "
    cost = "cost: must be a whole number from 1 to 100 or callable, got "
    log = "log: must respond to call, got "
    {
      { name: "" } => "#{name}\"\"; write for example name: \"api\"", { name: nil } => "#{name}nil; ", { name: :api } => "#{name}:api; ",
      { name: "a\"b" } => name, { name: "a\\b" } => name, { name: "é" } => name, { name: "a\r\nb" } => name,
      { cost: 0 } => "#{cost}0; write for example cost: 1", { cost: 101 } => "#{cost}101; ", { cost: 1.5 } => "#{cost}1.5; ",
      { cost: nil } => "#{cost}nil; ", { cost: "1" } => "#{cost}\"1\"; ",
      { log: Logger.new(nil) } => "#{log}an instance of Logger; write log: Rails.logger.method(:warn)", { log: :warn } => "#{log}:warn; "
    }.each do |options, message|
      error = assert_raises(Castellan::ConfigurationError, message) { limit(limit: 1, **options) }
      assert_includes error.message, "Castellan::RateLimit #{message}"
    end
    assert limit(limit: 1, name: "the api, v1", cost: 100, log: Logger.new(nil).method(:warn))
  end

  def test_rack_attack_may_be_required_after_castellan_outside_of_rails
    program = 'require "castellan"; require "rack/attack"; print Rack::Attack, defined?(Rails).inspect'
    assert_equal "Rack::Attacknil", Open3.capture2e(RbConfig.ruby, "-W0", "-rbundler/setup", "-I#{ROOT}/lib", "-e", program).first
  end

  private

  def limit(store: Castellan::Store::MemoryStore.new, period: YEAR, headers: {}, **options, &before)
    app = lambda do |_env|
      before&.call
      [200, { "content-type" => "text/plain", **headers }, ["ok"]]
    end
    @app = Rack::Lint.new(Castellan::RateLimit.new(Rack::Lint.new(app), period: period, store: store, **options))
  end

  def assert_shared_limit
    statuses = Array.new(2) do
      limit(limit: 1, store: yield)
      get.status
    end
    assert_equal [200, 429], statuses
  end

  def timed
    started_ns = Castellan::Clock.monotonic_ns
    answer = yield
    [answer, (Castellan::Clock.monotonic_ns - started_ns) / 1_000_000]
  end

  def get(**env)
    Rack::MockResponse[*@app.call(Rack::MockRequest.env_for("/").merge(env.transform_keys(&:to_s)))]
  end
end
