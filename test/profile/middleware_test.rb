# frozen_string_literal: true

require "test_helper"
require "profile/profile_world"

class ProfileMiddlewareTest < Minitest::Test
  include ProfileWorld

  def test_a_request_is_profiled_down_to_its_queries_and_their_lines
    line = nil
    profiled { line = __LINE__ and careless }
    response = get("/books/7?page=2", HTTP_ACCEPT: "application/json", HTTP_HOST: "localhost", HTTP_AUTHORIZATION: "Bearer secret",
                                      HTTP_COOKIE: "a=secret")
    assert_equal 200, response.status
    assert_equal ["GET", "/books/7", "page=2", "GET /books/:id", 200, response.body.bytesize],
                 %i[method path query endpoint status response_bytes].map { |name| result.public_send(name) }
    assert_equal({ "accept" => "application/json", "host" => "localhost" },
                 result.headers.slice("accept", "host", "authorization", "cookie"))
    assert_equal 1 + BOOKS, result.queries.size
    assert_equal({ queries: 1 + BOOKS, cached_queries: 0, rows: 0 }, result.totals.merge(rows: 0))
    repeated = result.queries.last
    assert_equal "select authors.* from authors where authors.id = ? limit ?", repeated[:sql]
    assert_includes repeated[:frames].join("\n"), "test/profile/middleware_test.rb:#{line}:in"
    assert_match(%r{\Atest/profile/profile_world.rb:\d+:in `careless'\z}, repeated[:frames].first)
  end

  # As `freeze_app` in config.ru does.
  def test_a_frozen_middleware_profiles_and_shows_its_page
    profiled { careless }
    @middleware.freeze
    assert_equal 200, get("/books").status
    assert_equal [200, true], get("/castellan").then { |page| [page.status, page.body.include?("/books")] }
  end

  def test_repeated_queries_are_a_finding_and_belong_to_it
    profiled { careless }
    get("/books")
    finding = result.findings.first
    assert_equal ["n_plus_one", BOOKS, "ProfileWorld::Book#author"], finding.values_at(:kind, :count, :association)
    assert_match(/add \.preload\(:author\)/, finding[:fix])
    assert_equal [nil, *([0] * BOOKS)], result.queries.map { |query| query[:finding] }
  end

  def test_the_parts_add_up_to_the_duration
    profiled { careless }
    get("/books")
    parts = result.parts
    assert_equal result.duration_ns, parts.values_at(:sql_ns, :render_ns, :cache_ns, :outside_ns).sum
    assert_operator parts[:sql_ns], :>, 0
    assert_equal result.queries.sum { |query| query[:duration_ns] }, parts[:sql_ns]
    assert(result.queries.each_cons(2).all? { |one, other| one[:at_ns] <= other[:at_ns] })
    assert_operator result.queries.last[:at_ns], :<, result.duration_ns
  end

  def test_values_of_statements_are_stored_only_if_enabled
    work = ->(_env) { [200, {}, [sequel[:books].where(title: "O'Hara \"secret\"").count.to_s]] }
    profiled(work)
    get("/books")
    refute_includes result.to_json, "Hara"
    profiled(work, literals: true)
    get("/books")
    assert_includes result.queries.first[:sql], "O''Hara"
    refute_includes result.queries.first[:fingerprint], "Hara"
  end

  def test_queries_of_sequel
    profiled { sequel[:books].all.each { |book| sequel[:authors].first(id: book[:author_id]) } }
    get("/books")
    assert_equal 1 + BOOKS, result.queries.size
    assert_equal 1, result.findings.size
  end

  def test_a_statement_within_the_loop_of_another_is_counted_once
    profiled { sequel[:books].each { |book| sequel[:authors].where(id: book[:author_id]).count } }
    get("/books")
    assert_operator result.queries.size, :>, 1
    assert_in_delta result.queries.sum { |query| query[:duration_ns] }, result.parts[:sql_ns], result.queries.size
  end

  def test_query_cache_hits_are_marked
    profiled { Base.cache { 3.times { Book.first.title } } }
    get("/books")
    assert_equal [1, 2], result.totals.values_at(:queries, :cached_queries)
    assert_equal([false, true, true], result.queries.map { |query| query[:cached] })
  end

  def test_server_timing_contains_the_parts_known_so_far
    profiled { careless }
    header = get("/books").headers["server-timing"]
    assert_match(/\Adb;dur=[\d.]+;desc="13 queries, 1 statement repeated", gc;dur=[\d.]+, app;dur=[\d.]+, total;dur=[\d.]+, p/, header)
  end

  def test_server_timing_names_the_profile
    profiled { careless }
    id = get("/books")["server-timing"][/, profile;desc="([\w-]+)"\z/, 1]
    assert_equal result.id, id
    assert_equal 200, get("/castellan/requests/#{id}").status
  end

  def test_server_timing_of_the_application_is_kept
    profiled(->(_env) { [200, { "Server-Timing" => "own;dur=1" }.freeze, []] })
    headers = get("/").headers
    assert_match(/\Aown;dur=1, db;dur=/, headers["server-timing"])
  end

  def test_no_shared_cache_may_keep_the_timing
    said = [nil, "", "public, max-age=60", "max-age=60, private=\"set-cookie\"", "private, max-age=0", "no-store",
            'public, x="a, no-store, b"']
    given = said.map do |one|
      profiled(->(_env) { [200, { "Cache-Control" => one }.compact, ["ok"]] })
      get("/").headers["cache-control"]
    end
    names = 'private="server-timing"'
    assert_equal [names, names, "public, max-age=60, #{names}", "max-age=60, private=\"set-cookie\", #{names}", "private, max-age=0",
                  "no-store", %(public, x="a, no-store, b", #{names})], given
  end

  def test_many_layers_and_long_names_fit_into_the_header
    parts = { sql_ns: 1, render_ns: 1, cache_ns: 1, gc_ns: 1, outside_ns: 1 }
    looks = Array.new(500) { |number| ["layer\"\\\r\n#{number}", :hit] }
    text = Castellan::Profile::ServerTiming.of(parts, total_ns: 5, queries: 50_000, repeated: 300, looks: looks)
    assert_operator text.bytesize, :<=, Castellan::Profile::ServerTiming::LONGEST
    refute_match(/[^ -~]/, text)
    assert_equal 4, text.count('"'), "a name that quotes ends no description"
  end

  def test_beside_a_long_header_of_the_application_there_is_as_much_as_finds_room
    sizes = [0, 300, 960, 5_000].map do |size|
      own = %(x;desc="#{"a" * size}")
      profiled(->(_env) { [200, { "Server-Timing" => own }, ["ok"]] })
      timing = get("/").headers["server-timing"]
      assert timing.start_with?(own), "the application's stays"
      [timing.delete_prefix(own).scan(/[a-z]+(?=;d)/), timing.bytesize <= [own.bytesize, 1_000].max]
    end
    assert_equal [%w[db gc app total profile], true], sizes[1]
    assert_equal [sizes[1], [["db"], true], [[], true]], [sizes[0], *sizes.last(2)]
  end

  def test_the_response_is_the_applications
    body = %w[a bc]
    headers = { "content-type" => "text/plain", "x-own" => "1" }.freeze
    profiled(->(_env) { [201, headers, body] })
    status, given, sent = @middleware.call(Rack::MockRequest.env_for("/"))
    assert_equal [201, headers], [status, given.except("server-timing", "cache-control")]
    assert_same body, sent
    assert_equal 3, result.response_bytes
  end

  def test_an_exception_goes_on_and_is_in_the_profile_without_its_message
    profiled { raise(KeyError, "the password is hunter2") if Book.first }
    error = assert_raises(KeyError) { get("/books") }
    assert_equal "the password is hunter2", error.message
    assert_equal [nil, 1], [result.status, result.queries.size]
    assert_match(%r{\AKeyError at test/profile/middleware_test.rb:\d+\z}, result.exception)
    assert_equal [nil, nil], [result.status, result.response_bytes]
    assert_nil Castellan::Recording.current
  end

  def test_a_request_that_throws_is_profiled
    profiled(->(_env) { throw :async })
    assert_nil(catch(:async) { get("/books") && :returned })
    assert_equal 1, results.size
  end

  def test_an_unknown_depth_is_ignored_and_reported
    profiled { "ok" }
    assert_equal "ok", get("/", HTTP_CASTELLAN_PROFILE: "memroy\"><b>").body
    assert_equal "sql", result.depth
    assert_match(/\Athere is no depth "memroy/, result.notes.first)
  end

  def test_the_parameter_is_left_to_the_application
    asked = nil
    profiled { |env| asked = env["QUERY_STRING"] }
    get("/?profile=sql&a=1")
    assert_equal "profile=sql&a=1", asked
  end

  def test_a_request_can_ask_not_to_be_profiled
    profiled { "ok" }
    refute get("/", HTTP_CASTELLAN_PROFILE: "off").headers.key?("server-timing")
    assert_empty @middleware.results.latest
  end

  def test_the_files_of_a_page_are_profiled_only_if_they_ask
    profiled { "ok" }
    %w[script style font].each { |kind| assert_equal "ok", get("/assets/#{kind}", HTTP_SEC_FETCH_DEST: kind).body }
    assert_empty @middleware.results.latest
    %w[document empty iframe image].each { |kind| get("/", HTTP_SEC_FETCH_DEST: kind) }
    get("/assets/slow?profile=sql", HTTP_SEC_FETCH_DEST: "script")
    assert_equal 5, @middleware.results.latest.size
  end

  def test_parameters_of_rack_mini_profiler_work_with_aliases
    depth = ->(query, aliases) { Castellan::Profile::Depth.of({ "QUERY_STRING" => query }, aliases: aliases).name }
    queries = %w[pp=enable a=1&pp=profile-memory pp=flamegraph pp=flamegraph&flamegraph_mode=cpu pp=disable pp=what app=enable]
    assert_equal ["sql", "memory", "wall", "cpu", nil, "sql", "sql"], queries.map { |query| depth.call(query, true) }
    assert_equal %w[sql sql], [depth.call("pp=profile-memory", false), depth.call("pp=disable", false)]
  end

  def test_the_header_overrides_the_parameter
    env = { "QUERY_STRING" => "profile=cpu", "HTTP_CASTELLAN_PROFILE" => "memory" }
    assert_equal "memory", Castellan::Profile::Depth.of(env).name
  end

  def test_secret_path_parameters_of_the_router_are_not_stored
    profiled { |env| env["action_dispatch.request.path_parameters"] = { token: "a b" } }
    get("/reset/a%20b.json")
    assert_equal ["/reset/[FILTERED]", "GET /reset/:id.json"], [result.path, result.endpoint]
    profiled { |env| env["action_dispatch.request.path_parameters"] = { token: "sesame" } }
    get("/reset/sesame")
    assert_equal ["/reset/[FILTERED]", "GET /reset/[FILTERED]"], [result.path, result.endpoint]
    profiled { |env| env["sinatra.route"] = "GET /of/:api_key/:id" }
    get("/of/abc/7", "SCRIPT_NAME" => "/v1")
    assert_equal ["/v1/of/[FILTERED]/7", "GET /of/:api_key/:id"], [result.path, result.endpoint]
  end

  def test_castellan_off_removes_it
    profiled { "ok" }
    with_env("CASTELLAN" => "off") do
      refute get("/").headers.key?("server-timing")
      assert_equal "ok", get("/castellan").body
    end
    assert_empty @middleware.results.latest
  end

  def test_there_are_no_subscribers_without_a_recording
    profiled { assert Castellan::Instrument.subscribed? }
    get("/")
    refute Castellan::Instrument.subscribed?
    assert_raises(RuntimeError) { profiled { raise "out" } && get("/") }
    refute Castellan::Instrument.subscribed?
  end

  def test_an_invalid_path_raises_at_boot
    ["castellan", "/castellan/", "/a b", "/", nil, "/<b>"].each do |path|
      assert_includes assert_raises(Castellan::ConfigurationError) { profiled(path: path) { "" } }.message, "path: must begin with a slash"
    end
  end

  def test_the_page_is_at_the_path_and_nowhere_else
    profiled(path: "/own/place") { "app" }
    get("/books")
    assert_includes get("/own/place").body, "GET /books"
    assert_equal "app", get("/own/places").body
    assert_equal "app", get("/castellan").body
  end
end
