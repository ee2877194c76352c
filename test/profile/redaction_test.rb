# frozen_string_literal: true

require "test_helper"
require "castellan/profile"
require "rack/mock"

class ProfileRedactionTest < Minitest::Test
  Redaction = Castellan::Profile::Redaction

  def query(text, **options) = Redaction.new(**options).query(text)

  def test_parameters_on_the_list_lose_their_values
    assert_equal "page=2&email=[FILTERED]", query("page=2&email=a%40b.c", filter: [:email])
    assert_equal "user[Password]=[FILTERED];api_key=[FILTERED]&x", query("user[Password]=a;api_key=b&x")
    assert_equal "a=[FILTERED]&b=1", query("a=1&b=1", filter: [/\Aa\z/])
    assert_equal "p%61ssword=[FILTERED]", query("p%61ssword=x"), "a name may be written in another way"
  end

  def test_a_name_within_names_is_met_as_rails_does
    filter = [/\Apin\z/, "card.code", ->(name, value) { value.reverse! if name == "zip" }]
    { "user[pin]=1" => "user[pin]=[FILTERED]", "a[][pin]=1" => "a[][pin]=[FILTERED]", "u[card][code]=12" => "u[card][code]=[FILTERED]",
      "u[zip]=12" => "u[zip]=[FILTERED]", "card_code=1" => "card_code=1", "u%5Bpin%5D=1" => "u%5Bpin%5D=[FILTERED]",
      "spin=1" => "spin=1" }.each { |asked, kept| assert_equal kept, query(asked, filter: filter) }
    assert_equal "u[x]=[FILTERED]", query("u[x]=12", filter: [->(_name, value, _all) { value.replace("") }])
  end

  def test_short_names_of_secrets_match_as_whole_words
    assert_equal "auth=[FILTERED]&author=1&jwt=[FILTERED]&pass=[FILTERED]&compass=1", query("auth=1&author=1&jwt=1&pass=1&compass=1")
  end

  def test_segments_of_a_path_that_are_secret_parameters
    redaction = Redaction.new(filter: [:email])
    assert_equal "/reset/[FILTERED]/2", redaction.path("/reset/a%20b/2", { token: "a b", id: "2" })
    assert_equal "/reset/[FILTERED]", redaction.path("/reset/abc.json", { "token" => "abc", "format" => "json" })
    assert_equal "/reset/[FILTERED]", redaction.path(Redaction.text("/reset/#{"a" * 3_000}"), { token: "a" * 3_000 }), "what was cut"
    assert_equal "/by/[FILTERED]/[FILTERED]", redaction.path("/by/a/b", { email: "a/b" }), "a glob"
    assert_equal "/users/2", redaction.path("/users/2", { id: "2", nested: { token: "2" } })
    assert_equal "/x/[FILTERED]", redaction.path("/x/\xFE".b, { token: "\xFE" })
  end

  def test_an_address_in_a_header_is_redacted
    redaction = Redaction.new
    { "http://h/p?password=x&a=1" => "http://h/p?password=[FILTERED]&a=1", "https://me:pw@h/p" => "https://h/p", "/?a\xFF" => "/?a?",
      "/plain" => "/plain" }
      .each { |sent, kept| assert_equal({ "origin" => kept }, redaction.headers("HTTP_ORIGIN" => sent)) }
  end

  def test_parts_of_a_path_in_several_encodings_are_one_text
    env = { "REQUEST_METHOD" => "G\xE9T", "SCRIPT_NAME" => "/\u00fc", "PATH_INFO" => "/\xFF/7".b }
    assert_equal "G?T /\u00fc/?/:id", Castellan::EndpointName.of(env)
    assert_equal "/\u00fc/\xFF/7".b, Castellan::EndpointName.path(env)
    assert_equal "GET \u00fc#?", Castellan::EndpointName.of("REQUEST_METHOD" => "GET", "action_dispatch.request.path_parameters" =>
      { controller: "\u00fc", action: "\xFF".b })
  end

  def test_the_tokens_of_the_profiler_are_always_on_it
    assert_equal "castellan_token=[FILTERED]", query("castellan_token=1.abc")
  end

  def test_a_proc_may_redact_values
    filter = ->(name, value) { value.replace("x") if name == "iban" }
    assert_equal "iban=[FILTERED]&page=2", query("iban=DE12&page=2", filter: [filter])
    assert_equal "page=[FILTERED]", query("page=2", filter: [->(_name, _value) { raise "a bug" }])
  end

  def test_bytes_that_are_no_text_and_long_ones
    assert_equal ["a=?", true], query("a=\xFF").then { |text| [text, text.valid_encoding?] }
    assert_equal "%zz=%", query("%zz=%")
    assert_operator query("a=#{"x" * 100_000}").size, :<, 3_000
    assert_equal ["", ""], [query(nil), query("")]
  end

  def test_only_chosen_headers_are_kept
    env = Rack::MockRequest.env_for("/", "HTTP_ACCEPT" => "*/*", "HTTP_AUTHORIZATION" => "Bearer x", "HTTP_COOKIE" => "a=b",
                                         "HTTP_REFERER" => "/?password=x", "HTTP_X_TENANT" => "7",
                                         "CONTENT_TYPE" => "text/plain\xFF", "HTTP_HOST" => "localhost")
    assert_equal({ "accept" => "*/*", "content-type" => "text/plain?", "host" => "localhost" }, Redaction.new.headers(env))
  end

  def test_the_store_holds_nothing_that_is_secret
    store = Castellan::Store::MemoryStore.new
    written = []
    store.define_singleton_method(:write_multi) { |entries, **options| super(entries.tap { |one| written << one.to_s }, **options) }
    app = ->(_env) { [200, { "set-cookie" => "session=hunter2" }, ["hunter2"]] }
    middleware = Castellan::Profile::Middleware.new(app, authorize: ->(_env) { true }, environment: nil, store: store, filter: ["pin"])
    secrets = { "HTTP_AUTHORIZATION" => "hunter2", "HTTP_COOKIE" => "a=hunter2" }
    Rack::MockRequest.new(middleware).get("/users?pin=hunter2&password=hunter2", secrets)
    assert_includes written.join, "/users"
    refute_includes written.join, "hunter2"
  end

  def test_hostile_paths_and_headers_are_kept_as_text
    app = ->(_env) { [200, {}, []] }
    middleware = Castellan::Profile::Middleware.new(app, authorize: ->(_env) { true }, environment: nil)
    middleware.call(Rack::MockRequest.env_for("/").merge("PATH_INFO" => "/<script>\xFF\u0000", "HTTP_USER_AGENT" => "<img src=x>\xFF"))
    result = middleware.results.find(middleware.results.latest.first.id)
    assert_equal "/<script>?\u0000", result.path
    assert_equal "<img src=x>?", result.headers["user-agent"]
  end

  def test_the_name_of_an_endpoint
    name = ->(env) { Castellan::EndpointName.of({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "" }.merge(env)) }
    paths = { "/users/12" => "/users/:id", "/users/12.json" => "/users/:id.json", "/v2/users" => "/v2/users", "/" => "/",
              "/a/3f2504e0-4f89-41d3-9a0c-0305e82c3301/b" => "/a/:id/b", "/users/deadbeefdeadbeef" => "/users/:id",
              "/users/anna" => "/users/anna" }
    paths.each { |path, endpoint| assert_equal "GET #{endpoint}", name.call("PATH_INFO" => path) }
    assert_equal "GET users#show", name.call("action_dispatch.request.path_parameters" => { controller: "users", action: "show" })
    assert_equal "GET /users/:name", name.call("sinatra.route" => "GET /users/:name")
    assert_equal "GET own", name.call("castellan.endpoint" => "own")
  end
end
