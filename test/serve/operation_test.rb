# frozen_string_literal: true

require "test_helper"
require "logger"
require "minitest/mock"
require "opentelemetry-sdk"
require "pg"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"
require "stringio"

# For operators: `/up` and `/ready`, the access log, spans.
module OperationContract
  def setup
    journal.fill
  end

  def teardown
    Castellan.tracing = nil
  end

  # --- health

  def test_up_and_ready_need_no_token
    app = build { health }
    assert_equal [[200, "up"], [200, "ready"], [401, nil]], %w[/up /ready /posts].map { |path|
      response = get(app, path, "HTTP_AUTHORIZATION" => nil)
      [response.status, (response.body unless response.status == 401)]
    }
    assert_equal [405, 200], [get(app, "/up", "REQUEST_METHOD" => "POST").status, get(app, "/up", "REQUEST_METHOD" => "HEAD").status]
    assert_equal 404, get(build, "/up").status
    assert_equal 200, get(build { health(up: "/live") }, "/live").status
  end

  def test_a_database_that_is_away_is_not_ready
    app = build { health }
    away = ->(*) { raise PG::ConnectionBad, "connection refused" }
    errors = StringIO.new
    replaced(journal.models::Post, away) do
      response = get(app, "/ready", "rack.errors" => errors)
      assert_equal [503, "1", "a database does not answer"], [response.status, response["retry-after"], response.body]
      assert_equal 200, get(app, "/up").status
    end
    assert_equal ["castellan: 503, because the database does not answer: PG::ConnectionBad: connection refused\n"], errors.string.lines
    assert_equal 200, get(app, "/ready").status
  end

  # --- the access log

  def test_each_request_is_a_line_of_json
    log = StringIO.new
    app = build { access_log log, filter: [:slug] }
    get(app, "/posts?filter[slug]=private&page[size]=2&token=abc", "SCRIPT_NAME" => "/api")
    get(app, "/posts/1/relationships/tags", "HTTP_X_REQUEST_ID" => "r-1")
    get(app, "/nothing\n{\"status\":200}")
    get(app, "/posts/1", "HTTP_AUTHORIZATION" => nil)
    lines = log.string.lines.map { |line| JSON.parse(line) }
    assert_equal [%w[/api/posts /posts 400], %w[/posts/1/relationships/tags /posts/{id}/relationships/tags 200],
                  ["/nothing\n{\"status\":200}", "", "404"], %w[/posts/1 /posts/{id} 401]],
                 lines.map { |line| [line["path"], line["route"].to_s, line["status"].to_s] }
    refute_match(/private|abc/, log.string)
    assert_equal "r-1", lines[1]["request_id"]
    assert_operator lines[0]["ms"], :>, 0
    assert_operator lines[1]["bytes"], :>, 10
  end

  def test_a_logger_and_a_callable_take_lines
    logged = StringIO.new
    seen = []
    [Logger.new(logged, formatter: ->(*, text) { text }), seen.method(:<<)].each { |output| get(build { access_log output }, "/posts") }
    assert_equal [200, 200], [JSON.parse(logged.string)["status"], seen.first["status"]]
    assert_raises(Castellan::ConfigurationError) { build { access_log 7 } }
  end

  def test_an_error_of_the_application_is_logged_and_raised
    log = StringIO.new
    app = build { access_log log }
    journal.models::PostResource.stub(:document, ->(*) { raise "broken" }) { assert_raises(RuntimeError) { get(app, "/posts") } }
    assert_equal 500, JSON.parse(log.string)["status"]
  end

  def test_an_access_log_that_cannot_be_written_leaves_the_response
    reader, full = IO.pipe
    [reader, full].each(&:close)
    errors = StringIO.new
    app = build { access_log full }
    assert_equal 200, get(app, "/posts", "rack.errors" => errors).status
    assert_includes errors.string, "the access log has not taken a line: IOError: closed stream"
    assert_equal 200, get(app, "/posts", "rack.errors" => full).status
  end

  # --- spans

  def test_each_request_is_a_span_with_its_phases
    exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    provider = OpenTelemetry::SDK::Trace::TracerProvider.new
    provider.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
    OpenTelemetry.stub(:tracer_provider, provider) do
      app = build { trace }
      get(app, "/posts/1?filter[slug]=x")
      get(app, "/posts/2")
      journal.models::PostResource.stub(:document, ->(*) { raise "broken" }) { assert_raises(RuntimeError) { get(app, "/posts") } }
    end
    spans = exporter.finished_spans
    around = ["castellan.authenticate", "castellan.answer"]
    phases = ["castellan.plan", "castellan.select", "castellan.encode"]
    names = [around[0], phases[0], around[1], "GET /posts/{id}", around[0], *phases, around[1], "GET /posts/{id}", around[0], phases[0],
             around[1], "GET /posts"]
    assert_equal names, spans.map(&:name)
    assert_equal [[400, "/posts/{id}"], [200, "/posts/{id}"]], spans.values_at(3, 9).map { |span|
      span.attributes.values_at("http.response.status_code", "http.route")
    }
    assert_equal [spans[9].span_id] * 2, spans.values_at(4, 8).map(&:parent_span_id)
    assert_equal [spans[8].span_id] * 3, spans[5..7].map(&:parent_span_id)
    assert(spans[5..7].all? { |span| span.start_timestamp.between?(spans[9].start_timestamp - 10**6, span.end_timestamp) })
    refute_includes spans.map(&:attributes).to_s, "slug"
    assert_empty spans.flat_map { |span| span.events.to_a.map(&:name) }
    failed = spans.select { |span| span.status.code == OpenTelemetry::Trace::Status::ERROR }
    assert_equal "/posts", failed.last.attributes["http.route"]
    assert_equal [%w[castellan.answer RuntimeError], ["GET /posts", "RuntimeError"]],
                 failed.map { |span| [span.name, span.status.description] }
  end

  def test_a_span_does_not_contain_a_method_that_the_client_made_up
    exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    provider = OpenTelemetry::SDK::Trace::TracerProvider.new
    provider.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
    OpenTelemetry.stub(:tracer_provider, provider) { get(build { trace }, "/posts", "REQUEST_METHOD" => "SECRET") }
    span = exporter.finished_spans.last
    assert_equal ["HTTP /posts", "_OTHER", 405], [span.name, *span.attributes.values_at("http.request.method", "http.response.status_code")]
  end

  def test_a_phase_never_begins_before_its_request_however_long_the_process_pauses_meanwhile
    exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    provider = OpenTelemetry::SDK::Trace::TracerProvider.new
    provider.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
    began = Time.now
    seconds = 0
    OpenTelemetry.stub(:tracer_provider, provider) do
      app = build { trace }
      Time.stub(:now, -> { began + (seconds += 1) - 1 }) do
        Castellan::Clock.stub(:monotonic_ns, -> { seconds * 1_000_000_000 }) { get(app, "/posts/2") }
      end
    end
    phases = exporter.finished_spans.select { |span| %w[castellan.plan castellan.select castellan.encode].include?(span.name) }
    assert_equal 3, phases.size
    assert_operator phases.map(&:start_timestamp).min, :>=, (began.to_r * 1_000_000_000).to_i
  end

  def test_a_304_by_the_tag_of_the_client_is_a_cache_event
    app = build { openapi title: "Journal", version: "1" }
    seen = []
    subscriber = ActiveSupport::Notifications.subscribe("cache.castellan") { |event| seen << event.payload.values_at(:layer, :outcome) }
    paths = %w[/posts /posts/1/relationships/tags /openapi.json]
    paths.each do |path|
      tag = get(app, path)["etag"]
      assert_equal 304, get(app, path, "HTTP_IF_NONE_MATCH" => tag).status
    end
    assert_equal [%i[validator hit]] * paths.size, seen
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end

  def test_a_kept_document_has_spans_of_its_version_and_the_cache
    exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    provider = OpenTelemetry::SDK::Trace::TracerProvider.new
    provider.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
    kept = journal.models::KeptPostResource
    versions = journal.versions
    versions.install(%w[posts writers tags taggings comments])
    Castellan.stub(:keeper, Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)) do
      OpenTelemetry.stub(:tracer_provider, provider) do
        app = Castellan.app do
          trace
          resource kept
        end
        2.times { assert_equal 200, Rack::MockRequest.new(app).get("/posts").status }
      end
    end
    hit = exporter.finished_spans.reverse.find { |span| span.name == "castellan.cache" }.attributes
    assert_equal %w[document hit], hit.values_at("castellan.layer", "castellan.outcome")
    assert_operator hit["castellan.bytes"], :>, 100
    assert_kind_of Float, hit["castellan.age"]
    first, second = exporter.finished_spans.slice_after { |span| span.name.start_with?("GET") }.map { |spans| spans.map(&:name) }
    assert_equal %w[version select encode], first.filter_map { |name| name[/version|select|encode/] }
    assert_equal %w[castellan.plan castellan.version castellan.cache], second.first(3)
    refute_includes second, "castellan.select"
  ensure
    versions&.uninstall(%w[posts writers tags taggings comments])
  end

  def test_castellan_cache_fetch_is_a_span_where_an_application_traces
    exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    provider = OpenTelemetry::SDK::Trace::TracerProvider.new
    provider.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
    OpenTelemetry.stub(:tracer_provider, provider) { build { trace } }
    cache = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: journal.versions).application_cache
    2.times { assert_equal "bytes", cache.fetch("key", expires_in: 60) { "bytes" } }
    spans = exporter.finished_spans
    assert_equal %w[castellan.cache castellan.cache castellan.fetch castellan.cache castellan.fetch], spans.map(&:name)
    assert_equal %w[fetch hit], spans[3].attributes.values_at("castellan.layer", "castellan.outcome")
    assert_equal spans[4].span_id, spans[3].parent_span_id
  end

  def test_a_database_that_is_away_is_503_with_retry_after
    app = build
    errors = StringIO.new
    replaced(journal.models::Post, ->(*) { raise PG::ConnectionBad, "connection refused" }) do
      journal.models::PostResource.stub(:document, ->(*) { raise PG::ConnectionBad, "connection refused" }) do
        response = get(app, "/posts", "rack.errors" => errors)
        assert_equal [503, "1"], [response.status, response["retry-after"]]
      end
    end
    assert_includes errors.string, "connection refused"
  end

  def test_a_write_to_a_database_that_is_away_is_503_and_logged
    app = build
    errors = StringIO.new
    body = JSON.generate(data: { type: "posts", attributes: { slug: "a", title: "A" } })
    away = ->(*) { raise PG::ConnectionBad, "connection refused" }
    Castellan::Write::Transaction.stub(:run, away) do
      response = get(app, "/posts", "REQUEST_METHOD" => "POST", "CONTENT_TYPE" => "application/vnd.api+json", "rack.errors" => errors,
                                    "rack.input" => StringIO.new(body.b))
      assert_equal [503, "1"], [response.status, response["retry-after"]], response.body
    end
    assert_equal ["castellan: 503, because the database does not answer: PG::ConnectionBad: connection refused\n"], errors.string.lines
  end

  private

  def build(&block)
    models = journal.models
    Rack::Lint.new(Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"]&.to_i }
      instance_exec(&block) if block
      %w[Post Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") }
    end)
  end

  def get(app, path, **env)
    errors = env.key?("rack.errors") ? env.delete("rack.errors") : nil
    path, query = path.split("?")
    env = { "HTTP_AUTHORIZATION" => "0", "PATH_INFO" => path, "QUERY_STRING" => query.to_s }.merge(env.transform_keys(&:to_s)).compact
    env = Rack::MockRequest.env_for("/").merge(env)
    env["rack.errors"] = errors if errors
    Rack::MockResponse[*app.call(env)]
  end

  # Replaces what `ping` of the model calls.
  def replaced(model, error, &block)
    model.stub(%i[connection_pool db].find { |name| model.respond_to?(name) }, error, &block)
  end
end

class OperationOnActiveRecordTest < Minitest::Test
  include OperationContract

  def journal = Journal.active_record(:sqlite)
end

class OperationOnSequelTest < Minitest::Test
  include OperationContract

  def journal = Journal.sequel(:sqlite)
end
