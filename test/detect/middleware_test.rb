# frozen_string_literal: true

require_relative "active_record_world"
require "logger"
require "net/http"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "sinatra/base"
require "stringio"
require "timeout"

class DetectMiddlewareTest < Minitest::Test
  World = ActiveRecordWorld
  Middleware = Castellan::Detect::Middleware

  def setup
    @log = StringIO.new
  end

  def teardown
    Castellan::Instrument.unsubscribe while Castellan::Instrument.subscribed?
  end

  def test_findings_are_in_the_header_and_the_log_but_not_in_the_body
    response = get(employees)
    line = method(:employees).source_location.last + 2
    assert_equal "n_plus_one 5 test/detect/middleware_test.rb:#{line} ActiveRecordWorld::User#employee", response["castellan-findings"]
    assert_includes @log.string, "GET /: 1 finding\n  n_plus_one: 5 queries"
    assert_includes @log.string, "add .preload(:employee)"
    assert_equal "5", response.body
  end

  def test_findings_are_logged_in_a_modular_sinatra_application
    app = Class.new(Sinatra::Base) do
      set :environment, :production
      use Middleware, environment: "development", slow_ms: nil
      get("/") { stream { |out| out << World::User.all.to_a.count(&:employee).to_s } }
    end
    assert_equal "5", Rack::MockRequest.new(app).get("/", "rack.errors" => @log).body
    assert_includes @log.string, "GET /: 1 finding"
  end

  def test_a_request_without_findings_is_unchanged
    response = get(->(_env) { [200, {}, [World::User.count.to_s]] })
    assert_nil response["castellan-findings"]
    assert_empty @log.string
  end

  def test_in_production_only_authorised_requests_are_recorded
    assert_nil get(employees, environment: "production")["castellan-findings"]
    authorize = ->(env) { env["HTTP_X_DEVELOPER"] == "yes" }
    assert_nil get(employees, environment: "production", authorize: authorize)["castellan-findings"]
    refute_nil get(employees, { "HTTP_X_DEVELOPER" => "yes" }, environment: "production", authorize: authorize)["castellan-findings"]
  end

  def test_switched_off_it_only_passes_on
    with_env("CASTELLAN" => "off") { assert_nil get(employees)["castellan-findings"] }
    refute_predicate Castellan::Instrument, :subscribed?
  end

  def test_a_lazy_body_is_recorded_until_it_is_closed
    users = World::User.all.to_a
    lazy = Enumerator.new { |yielder| World::User.all.to_a.each { |user| yielder << user.employee.id.to_s } }
    assert_equal users.map { |user| user.employee.id }.join, get(->(_env) { [200, {}, lazy] }).body
    assert_includes @log.string, "5 queries at test/detect/middleware_test.rb:#{__LINE__ - 2}"
    assert_nil Castellan::Recording.current
  end

  def test_a_streaming_body_is_recorded
    stream = ->(out) { World::User.all.to_a.each { |user| out << user.employee.id.to_s } && out.close }
    _, _, body = build(->(_env) { [200, {}, stream] }).call(env)
    refute_respond_to body, :each
    body.call(StringIO.new)
    assert_includes @log.string, "5 queries"
  end

  def test_a_request_that_raises_throws_or_times_out_logs_its_findings
    assert_raises(RuntimeError) { get(failing { raise "out" }) }
    catch(:out) { get(failing { throw :out }) }
    assert_raises(Timeout::Error) { Timeout.timeout(0.2) { get(failing { Queue.new.pop }) } }
    assert_nil Castellan::Recording.current
    assert_equal 3, @log.string.scan("GET /: 1 finding\n  n_plus_one: 5 queries").size
  end

  def test_findings_are_lines_of_json_in_a_file
    Dir.mktmpdir do |dir|
      file = File.join(dir, "findings.jsonl")
      2.times { get(employees, json_lines: file) }
      lines = File.readlines(file).map { |line| JSON.parse(line) }
      assert_equal [["GET", "/", "n_plus_one", 5, "ActiveRecordWorld::User#employee"]] * 2,
                   lines.map { |line| line.values_at("method", "path", "kind", "count", "association") }
    end
  end

  def test_a_file_that_cannot_be_written_changes_no_response
    response = get(employees, json_lines: "/nowhere/findings.jsonl")
    assert_equal "5", response.body
    assert_includes @log.string, "could not report its findings"
  end

  def test_nested_middlewares_both_have_the_findings
    inner = build(employees)
    assert_equal %w[n_plus_one] * 2, [get(inner), get(employees)].map { |response| response["castellan-findings"][/\w+/] }
    assert_equal 3, @log.string.scan("5 queries").size
  end

  def test_an_error_of_the_reporter_changes_no_response
    response = get(employees) { raise "no room" }
    assert_equal "5", response.body
    assert_includes @log.string, "could not report its findings"
  end

  def test_an_error_of_authorize_or_of_the_logger_changes_no_response
    assert_equal "5", get(employees, authorize: ->(_env) { raise "no session" }).body
    assert_includes @log.string, "could not authorise the request"
    full = Object.new
    def full.puts(*) = raise(Errno::EPIPE)
    def full.warn(*) = raise(Errno::ENOSPC)
    assert_equal "5", get(employees, { "rack.errors" => full }, logger: nil).body
    assert_equal "5", get(employees, logger: full).body
    assert_equal "5", get(employees) { raise NotImplementedError }.body
  end

  # A tree of associations by models would contain itself: User > posts > user.
  def test_a_join_that_returns_to_its_model_changes_no_response
    back = lambda do |_env|
      users = World::User.eager_load(comments: { post: :user }).to_a
      [200, {}, [users.count(&:employee).to_s]]
    end
    response = get(back)
    assert_equal "5", response.body
    assert_includes response["castellan-findings"], "n_plus_one 5"
    assert_includes @log.string, "add .preload(:employee)"
  end

  def test_an_unused_eager_load_is_reported_once_after_enough_requests
    said = []
    middleware = build(in_vain, evidence: 1) { |findings, _env| said.concat(findings.map(&:kind)) }
    19.times { middleware.call(env) }
    assert_empty said
    assert_equal "unused_eager_load 20 test/detect/middleware_test.rb:#{method(:in_vain).source_location.last + 1} " \
                 "ActiveRecordWorld::User#posts", middleware.call(env)[1]["castellan-findings"]
    20.times { middleware.call(env) }
    assert_equal [:unused_eager_load], said
    refute_predicate Castellan::Instrument::EagerInstrument, :attached?
  end

  def test_unused_eager_loads_can_be_switched_off
    said = []
    middleware = build(in_vain, evidence: false) { |findings, _env| said.concat(findings) }
    20.times { middleware.call(env) }
    assert_empty said
    assert_raises(Castellan::ConfigurationError) { build(in_vain, evidence: 2) }
  end

  def test_a_sampled_request_that_raises_stops_observing_reads
    assert_raises(RuntimeError) { get(failing { raise "out" }, evidence: 1) }
    refute_predicate Castellan::Instrument::EagerInstrument, :attached?
  end

  def test_the_application_configures_slow_ms
    slow = ->(_env) { [200, {}, [World::User.count.to_s]] }
    assert_includes get(slow, slow_ms: 0)["castellan-findings"], "slow_query 1"
    assert_nil get(slow, slow_ms: nil)["castellan-findings"]
  end

  def test_a_block_receives_the_findings
    taken = nil
    get(employees) { |findings, env| taken = [findings.size, env["PATH_INFO"]] }
    assert_equal [1, "/"], taken
  end

  def test_sixteen_threads_keep_their_findings_separate
    app = build(lambda do |env|
      count = env["QUERY_STRING"].to_i
      World::User.limit(count).to_a.each(&:employee)
      [200, { "content-type" => "text/plain" }, [count.to_s]]
    end)
    Castellan::TestServers.puma(app, threads: 16) do |base_url|
      answers = Array.new(16) { |number| Thread.new { Array.new(10) { ask(base_url, number % 6) } } }.flat_map(&:value)
      assert_equal 160, answers.size
      found, none = answers.partition { |count, _| count >= 2 }
      found.each { |count, findings| assert_equal count, findings[/\An_plus_one (\d+) [^,]*\z/, 1].to_i }
      assert_empty none.filter_map(&:last)
    end
  end

  private

  def in_vain
    ->(_env) { [200, {}, [World::User.preload(:posts).to_a.size.to_s]] }
  end

  def failing
    lambda do |_env|
      World::User.all.to_a.each(&:employee)
      yield
    end
  end

  def employees
    lambda do |_env|
      count = World::User.all.to_a.count(&:employee)
      [200, { "content-type" => "text/plain" }, [count.to_s]]
    end
  end

  # Without `slow_ms`, because any query is slow on a busy machine.
  def build(app, **options, &block) = Middleware.new(app, logger: Logger.new(@log), slow_ms: nil, **options, &block)

  def get(app, extra = {}, **options, &block)
    Rack::MockRequest.new(build(app, **options, &block)).get("/", extra)
  end

  def env = Rack::MockRequest.env_for("/")

  def ask(base_url, count)
    response = Net::HTTP.get_response(URI("#{base_url}/?#{count}"))
    [response.body.to_i, response["castellan-findings"]]
  end
end
