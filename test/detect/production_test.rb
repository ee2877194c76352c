# frozen_string_literal: true

require_relative "active_record_world"
require "net/http"
require "rack"
require "rack/mock_request"
require "stringio"
require "timeout"

class DetectProductionTest < Minitest::Test
  World = ActiveRecordWorld
  Production = Castellan::Detect::Production

  def teardown
    Castellan::Instrument.unsubscribe while Castellan::Instrument.subscribed?
  end

  def test_findings_are_added_up_by_endpoint_and_association
    heard = []
    watch = Castellan::Detect.production(sample: 1, threshold: 5, min_ms: 0, slow_ms: nil) { |finding, endpoint| heard << [finding.association, endpoint] }
    [1, 2, 3].each { |id| assert_equal 200, get(watch, "/teams/#{id}/users") }
    entry = watch.findings.first
    assert_equal ["GET /teams/:id/users", 3, 15], [entry.endpoint, entry.times, entry.queries]
    assert_equal({ p50: 5, p95: 5, p99: 5, max: 5 }, entry.per_request.to_h)
    assert_operator entry.ns_per_request.percentile(99), :>, 0
    assert_in_delta Time.now.to_f, entry.last_seen_at.to_f, 60
    assert_equal [["ActiveRecordWorld::User#employee", "GET /teams/:id/users"]], heard
  end

  def test_a_finding_is_logged_once_as_text_or_json
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    errors = StringIO.new
    2.times { get(watch, "/users", "rack.errors" => errors) }
    assert_equal 1, errors.string.scan("GET /users: n_plus_one: 5 queries at test/detect/production_test.rb:").size
    entry = watch.findings.first
    assert_match(%r{\AGET /users: n_plus_one in 2 requests, queries p50 5 p95 5 p99 5, ms p50 .*, last at \d{4}-}, entry.to_s)
    assert_equal({ "p50" => 5, "p95" => 5, "p99" => 5, "max" => 5 }, JSON.parse(JSON.generate(entry.to_h))["queries_per_request"])
    assert_match(/\Awatched 2 requests\nGET /, watch.to_s)
  end

  # Two endpoints that give what they loaded to one helper.
  def test_each_endpoint_has_the_line_of_its_load
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    shared = ->(users) { users.each(&:employee) }
    apps = { "/one" => -> { shared.call(World::User.all.to_a) },
             "/two" => -> { shared.call(World::User.all.to_a) } }
    apps.each { |path, work| watch.call(->(_env) { work.call && [200, {}, []] }, Rack::MockRequest.env_for(path)) }
    assert_equal [__LINE__ - 3, __LINE__ - 2].map { |line| "test/detect/production_test.rb:#{line}" },
                 watch.findings.sort_by { |one| one.endpoint.to_s }.map { |one| one.finding.parent_location }
  end

  def test_too_few_or_too_quick_repeats_are_no_finding
    [{ threshold: 6, min_ms: 0 }, { threshold: 5, min_ms: 60_000 }].each do |limits|
      watch = Castellan::Detect.production(sample: 1, **limits)
      get(watch, "/")
      assert_empty watch.findings
    end
  end

  # Repeats that are quick themselves count when what lies between them takes its time.
  def test_time_is_counted_from_the_start_of_the_first_to_the_end_of_the_last
    watch = Castellan::Detect.production(sample: 1, min_ms: 300)
    app = lambda do |_env|
      users = World::User.all.to_a
      [0, 1, 2, 3, 4].each { |index| tell("SELECT * FROM employees WHERE user_id = ?", index * 0.08, users[index].id) }
      [200, {}, []]
    end
    watch.call(app, env)
    assert_equal [5], watch.findings.map(&:queries)
  end

  def test_it_stays_bounded
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: false)
    names = ("aa".."zz").first(Production::Entries::MOST + 20)
    names.each { |name| get(watch, "/#{name}") }
    assert_equal names.last(Production::Entries::MOST).map { |name| "GET /#{name}" }.sort, watch.findings.map(&:endpoint).sort
  end

  def test_invalid_limits_raise
    [[:sample, 0], [:sample, "0.1"], [:threshold, 1], [:min_ms, -1], [:slow_ms, "500"], [:evidence, true]].each do |name, value|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Detect.production(name => value) }
      assert_includes error.message, "#{name}: must"
      assert_includes error.message, "got #{value.inspect}; write for example #{name}:"
    end
  end

  def test_the_sample_rate_limits_the_recorded_requests
    watch = Castellan::Detect.production(min_ms: 0, sample: 0.25)
    watch.stub(:rand, [0.1, 0.9].cycle.method(:next)) { 10.times { watch.call(->(_env) { [200, {}, []] }, env) } }
    assert_equal 5, watch.requests
  end

  def test_stopped_it_only_passes_on
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    2.times { watch.stop }
    assert_equal 200, get(watch, "/")
    assert_equal [0, []], [watch.requests, watch.findings]
    refute_predicate Castellan::Instrument, :subscribed?
  end

  def test_a_request_that_raises_throws_or_times_out_has_its_findings
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: false)
    assert_raises(RuntimeError) { watch.call(failing { raise "out" }, env("/raise")) }
    catch(:out) { watch.call(failing { throw :out }, env("/throw")) }
    assert_raises(Timeout::Error) { watch.call(failing { Timeout.timeout(0.01) { Queue.new.pop } }, env("/timeout")) }
    assert_nil Castellan::Recording.current
    assert_equal ["GET /raise", "GET /throw", "GET /timeout"], watch.findings.map(&:endpoint).sort
  end

  def test_a_lazy_body_is_recorded_until_it_is_closed
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    lazy = Enumerator.new { |yielder| World::User.all.to_a.each { |user| yielder << user.employee.id.to_s } }
    _, _, body = watch.call(->(_env) { [200, {}, lazy] }, env)
    assert_empty watch.findings
    body.to_enum(:each).to_a
    body.close
    assert_equal [5], watch.findings.map(&:queries)
  end

  def test_nested_middlewares_both_have_the_findings
    outer = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    inner = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    findings = Castellan::Detect.watch(slow_ms: nil) { outer.call(inner.middleware.new(employees), env) }
    assert_equal [[5], [5], [5]], [findings.map(&:count), outer.findings.map(&:queries), inner.findings.map(&:queries)]
  end

  def test_sixteen_threads_of_a_server_keep_their_requests_separate
    log = Log.new(Queue.new)
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, logger: log, slow_ms: nil)
    asked = [*WALKS.keys, "none", "raise"].cycle.first(16 * 24)
    Castellan::TestServers.puma(watch.middleware.new(method(:mixed)), threads: 16) do |base_url|
      asked.each_slice(24).map { |ways| Thread.new { ways.each { |way| ask(base_url, way) } } }.each(&:join)
    end
    expected = WALKS.map { |way, association| ["GET /#{way}", "ActiveRecordWorld::User##{association}", asked.count(way)] }
    found = watch.findings.map { |entry| [entry.endpoint, entry.finding.association, entry.times] }
    assert_equal expected.sort, found.sort, log.to_s
    watch.findings.each { |entry| assert_equal({ p50: 5, p95: 5, p99: 5, max: 5 }, entry.per_request.to_h, entry.endpoint) }
  end

  def test_an_unused_eager_load_is_reported_with_its_endpoint_until_it_is_read
    heard = []
    watch = Castellan::Detect.production(sample: 1, evidence: 1) { |finding, endpoint| heard << [finding.kind, finding.association, endpoint] }
    19.times { watch.call(in_vain(:to_a), env("/users")) }
    assert_empty watch.findings
    2.times { watch.call(in_vain(:to_a), env("/users")) }
    assert_equal [[:unused_eager_load, "ActiveRecordWorld::User#posts", "GET /users"]], heard
    assert_equal [["GET /users", 2, 2]], watch.findings.map { |entry| [entry.endpoint, entry.times, entry.queries] }
    watch.call(in_vain(->(users) { users.map { |user| user.posts.to_a } }), env("/posts"))
    assert_empty watch.findings
  end

  def test_an_association_with_repeated_queries_is_not_reported_as_unused
    watch = Castellan::Detect.production(sample: 1, evidence: 1, min_ms: 0)
    watch.call(->(_env) { [200, {}, [World::User.all.to_a.sum { |user| user.posts.size }.to_s]] }, env("/posts"))
    20.times { watch.call(in_vain(:to_a), env("/users")) }
    assert_equal [:n_plus_one], watch.findings.map { |entry| entry.finding.kind }
  end

  def test_an_internal_error_is_logged_and_stops_observing_reads
    errors = StringIO.new
    watch = Castellan::Detect.production(sample: 1, evidence: 1)
    mistake = ->(*) { raise "a bug" }
    app = ->(_env) { World::User.where(name: "of a mistake").to_a && [200, {}, []] }
    Castellan::Fingerprint.stub(:of, mistake) { watch.call(app, env.merge("rack.errors" => errors)) }
    refute_predicate Castellan::Instrument::EagerInstrument, :attached?
    assert_includes errors.string, "Castellan's detector failed: "
  end

  def test_a_logger_that_fails_changes_no_response
    full = Object.new
    def full.puts(*) = raise(Errno::EPIPE)
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    assert_equal 200, get(watch, "/users", "rack.errors" => full)
    assert_equal 1, watch.findings.size
  end

  def test_the_application_configures_slow_ms
    slow = ->(_env) { [200, {}, [World::User.count.to_s]] }
    watches = [0, nil].map { |slow_ms| Castellan::Detect.production(sample: 1, slow_ms: slow_ms) }
    watches.each { |watch| watch.call(slow, env) }
    assert_equal([[:slow_query], []], watches.map { |watch| watch.findings.map { |entry| entry.finding.kind } })
  end

  def test_bodies_of_any_kind_are_recorded_to_their_end
    ids = -> { World::User.all.to_a.map { |user| user.employee.id.to_s } }
    lazy = Enumerator.new { |yielder| ids.call.each { |id| yielder << id } }
    bodies = { "array" => ids, "lazy" => -> { lazy }, "as_array" => -> { Struct.new(:to_ary).new(ids.call) },
               "file" => -> { ids.call && Pathname(__FILE__) } }
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: false)
    bodies.each do |name, make|
      _, _, body = watch.call(->(_env) { [200, {}, make.call] }, env("/#{name}"))
      body.to_enum(:each).to_a && body.close if name == "lazy"
    end
    assert_equal bodies.keys.map { |name| ["GET /#{name}", 5] }.sort, watch.findings.map { |entry| [entry.endpoint, entry.queries] }.sort
    assert_equal bodies.size, watch.requests
  end

  # Reported as "took 5.0 % of the time" where threads took turns: time in which the detector's thread did not run.
  def test_threads_that_wait_for_each_other_do_not_pause_it
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: false)
    waiting = ->(_env) { World::User.all.to_a.each { |user| user.employee && Thread.pass } && [200, {}, []] }
    Array.new(8) { Thread.new { 20.times { watch.call(waiting, env("/users")) } } }.each(&:join)
    assert_equal [["GET /users", 160]], watch.findings.map { |entry| [entry.endpoint, entry.times] }
  end

  def test_statement_names_that_change_each_time_are_one_finding
    heard = []
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: false) { |finding, _endpoint| heard << finding.count }
    number = 0
    app = lambda do |_env|
      5.times { World::User.from("users AS a#{number += 1}").where("a#{number}.id = ?", number).pluck(Arel.sql("a#{number}.id")) }
      [200, {}, []]
    end
    3.times { watch.call(app, env("/users")) }
    assert_equal [[5], [["GET /users", 3, 15]]], [heard, watch.findings.map { |entry| [entry.endpoint, entry.times, entry.queries] }]
  end

  def test_new_findings_are_reported_at_a_limited_rate
    now = 0
    Castellan::Clock.stub(:monotonic_ns, -> { now }) do
      heard = []
      log = Log.new(Queue.new)
      watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: log) { |_finding, endpoint| heard << endpoint }
      ("a".."o").each { |name| get(watch, "/#{name}") }
      assert_equal [Production::REPORTS_A_MINUTE, 15], [heard.size, watch.findings.size]
      now = 61_000_000_000
      get(watch, "/p")
      assert_equal "GET /p", heard.last
      assert_includes log.to_s, "5 more findings were not logged: at most 10 are logged in a minute"
    end
  end

  # The reports of all threads.
  Log = Struct.new(:lines) do
    def warn(line) = lines << line
    def to_s = Array.new(lines.size) { lines.pop }.join("\n")
  end
  private_constant :Log

  private

  WALKS = { "employee" => :employee, "tokens" => :tokens, "posts" => :posts, "notes" => :notes, "lazy" => :comments }.freeze
  private_constant :WALKS

  def mixed(env)
    way = env["PATH_INFO"].delete_prefix("/")
    raise "out" if way == "raise"

    users = World::User.all.to_a
    walk = ->(user) { user.public_send(WALKS.fetch(way)).inspect.size.to_s }
    body = { "none" => [""], "lazy" => Enumerator.new { |yielder| users.each { |user| yielder << walk.call(user) } } }
    [200, { "content-type" => "text/plain" }, body.fetch(way) { users.map(&walk) }]
  end

  def ask(base_url, way) = Net::HTTP.get_response(URI("#{base_url}/#{way}")).body

  def failing
    lambda do |_env|
      World::User.all.to_a.each(&:employee)
      yield
    end
  end

  def tell(sql, after, id)
    @begun ||= Process.clock_gettime(Process::CLOCK_MONOTONIC)
    started = ((@begun + after) * 1e9).to_i
    Castellan::Recording.current.query(sql, "Employee Load", started, 1_000_000, false, 1, [id])
  end

  # Reads users whose posts were loaded with them.
  def in_vain(work) = ->(_env) { [200, {}, [work.to_proc.call(World::User.preload(:posts).to_a).size.to_s]] }

  def employees = ->(_env) { [200, {}, [World::User.all.to_a.count(&:employee).to_s]] }

  def env(path = "/") = Rack::MockRequest.env_for(path)

  def get(watch, path, extra = {})
    Rack::MockRequest.new(watch.middleware.new(employees)).get(path, extra).status
  end
end
