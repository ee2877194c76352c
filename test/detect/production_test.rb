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
    watch = Castellan::Detect.production(threshold: 5, min_ms: 0) { |finding, endpoint| heard << [finding.association, endpoint] }
    [1, 2, 3].each { |id| assert_equal 200, get(watch, "/teams/#{id}/users") }
    entry = watch.findings.first
    assert_equal ["GET /teams/:id/users", 3, 15], [entry.endpoint, entry.times, entry.queries]
    assert_equal({ p50: 5, p95: 5, p99: 5, max: 5 }, entry.per_request.to_h)
    assert_operator entry.ns_per_request.percentile(99), :>, 0
    assert_in_delta Time.now.to_f, entry.last_seen_at.to_f, 60
    assert_equal [["ActiveRecordWorld::User#employee", "GET /teams/:id/users"]], heard
  end

  def test_the_log_hears_of_a_finding_once_and_reads_as_text_and_as_json
    watch = Castellan::Detect.production(min_ms: 0)
    errors = StringIO.new
    2.times { get(watch, "/users", "rack.errors" => errors) }
    assert_equal 1, errors.string.scan("GET /users: n_plus_one: 5 queries at test/detect/production_test.rb:").size
    entry = watch.findings.first
    assert_match(%r{\AGET /users: n_plus_one in 2 requests, queries p50 5 p95 5 p99 5, ms p50 .*, last at \d{4}-}, entry.to_s)
    assert_equal({ "p50" => 5, "p95" => 5, "p99" => 5, "max" => 5 }, JSON.parse(JSON.generate(entry.to_h))["queries_per_request"])
    assert_match(/\Awatched 2 requests for \d+\.\d+ % of their time, rested 0 times\nGET /, watch.to_s)
  end

  # Two endpoints that give what they loaded to one helper.
  def test_each_endpoint_has_the_place_of_its_own_load
    watch = Castellan::Detect.production(min_ms: 0)
    shared = ->(users) { users.each(&:employee) }
    apps = { "/one" => -> { shared.call(World::User.all.to_a) },
             "/two" => -> { shared.call(World::User.all.to_a) } }
    apps.each { |path, work| watch.call(->(_env) { work.call && [200, {}, []] }, Rack::MockRequest.env_for(path)) }
    assert_equal [__LINE__ - 3, __LINE__ - 2].map { |line| "test/detect/production_test.rb:#{line}" },
                 watch.findings.sort_by { |one| one.endpoint.to_s }.map { |one| one.finding.parent_location }
  end

  def test_too_few_or_too_quick_repeats_are_no_finding
    [{ threshold: 6, min_ms: 0 }, { threshold: 5, min_ms: 60_000 }].each do |limits|
      watch = Castellan::Detect.production(**limits)
      get(watch, "/")
      assert_empty watch.findings
    end
  end

  # Repeats that are quick themselves count when what lies between them takes its time.
  def test_time_is_counted_from_the_start_of_the_first_to_the_end_of_the_last
    watch = Castellan::Detect.production(min_ms: 300)
    app = lambda do |_env|
      users = World::User.all.to_a
      [0, 1, 2, 3, 4].each { |index| tell("SELECT * FROM employees WHERE user_id = ?", index * 0.08, users[index].id) }
      [200, {}, []]
    end
    watch.call(app, env)
    assert_equal [5], watch.findings.map(&:queries)
  end

  def test_it_stays_bounded
    watch = Castellan::Detect.production(min_ms: 0, budget: 1000, logger: false)
    names = ("aa".."zz").first(Production::Entries::MOST + 20)
    names.each { |name| get(watch, "/#{name}") }
    assert_equal names.last(Production::Entries::MOST).map { |name| "GET /#{name}" }.sort, watch.findings.map(&:endpoint).sort
  end

  def test_it_knows_its_own_cost
    watch = Castellan::Detect.production(min_ms: 0, budget: 1000)
    clock = 0
    Castellan::Clock.stub(:monotonic_ns, -> { clock += 1_000 }) { get(watch, "/") }
    cost = watch.cost
    assert_equal [1, 0], cost.values_at(:requests, :times_resting)
    # The first request is metered: the clock is read twice for each of 6 statements, 5 walks and their ends, and a load; and for what
    # else is subscribed.
    watched, spent = cost.values_at(:watched_ns, :spent_ns)
    assert_operator watched, :>=, 35_000
    assert_includes 18_000...watched, spent
    assert_in_delta spent.fdiv(watched), cost[:share]
  end

  def test_who_asks_for_the_cost_does_not_open_the_breaker
    watch = in_a_stretch(budget: 0, logger: nil)
    { :@spent_ns => 1, :@watched_ns => Production::Breaker::WINDOW_NS }.each { |name, value| watch.instance_variable_set(name, value) }
    2.times { assert_equal [1, Production::Breaker::WINDOW_NS], watch.cost.values_at(:requests, :watched_ns) }
    refute_predicate watch, :resting?
    errors = StringIO.new
    watch.call(->(_env) { [200, {}, []] }, env.merge("rack.errors" => errors))
    assert_includes errors.string, "and rests"
  end

  def test_past_its_budget_it_rests_and_comes_back
    clock = 0
    Castellan::Clock.stub(:monotonic_ns, -> { clock += 600_000_000 }) do
      errors = StringIO.new
      watch = Castellan::Detect.production(min_ms: 0, budget: 0.01)
      get(watch, "/first", "rack.errors" => errors)
      assert_predicate watch, :resting?
      assert_includes errors.string, "of the time that it watched, and rests"
      Production::Breaker::REST.times { get(watch, "/rest") }
      refute_predicate watch, :resting?
      assert_equal ["GET /first"], watch.findings.map(&:endpoint)
    end
  end

  def test_the_breaker_rests_longer_each_time_and_forgives
    breaker = Production::Breaker.new(0.01)
    rests = Array.new(3) { breaker.spend(20_000_000, 1_000_000_000) && resting(breaker) }
    assert_equal [100, 200, 400], rests
    assert_nil breaker.spend(9_000_000, 1_000_000_000)
    assert_in_delta 0.02, breaker.spend(20_000_000, 1_000_000_000)
    assert_equal [100, 4, 5], [resting(breaker), breaker.times_open, breaker.requests]
  end

  def test_a_slow_second_long_ago_is_not_held_against_it
    breaker = Production::Breaker.new(0.01)
    breaker.spend(500_000_000, 1_000_000_000)
    resting(breaker)
    assert_nil breaker.spend(1_000_000, 999_000_000)
    assert_nil breaker.spend(1_000_000, 999_000_000)
    refute_predicate breaker, :open?
  end

  def test_limits_that_are_none_are_refused
    { sample: 0, threshold: 1, min_ms: -1, budget: -1 }.each do |name, value|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Detect.production(name => value) }
      assert_includes error.message, "#{name}: must"
    end
  end

  def test_a_sample_watches_its_share
    watch = Castellan::Detect.production(min_ms: 0, sample: 0.25, budget: 1000)
    watch.stub(:rand, [0.1, 0.9].cycle.method(:next)) { 10.times { watch.call(->(_env) { [200, {}, []] }, env) } }
    assert_equal 5, watch.cost[:requests]
  end

  def test_stopped_it_only_passes_on
    watch = Castellan::Detect.production(min_ms: 0)
    2.times { watch.stop }
    assert_equal 200, get(watch, "/")
    assert_equal [0, []], [watch.cost[:requests], watch.findings]
    refute_predicate Castellan::Instrument, :subscribed?
  end

  def test_a_request_that_raises_throws_or_runs_out_of_time_has_its_findings_and_closes_its_recording
    watch = Castellan::Detect.production(min_ms: 0, logger: false)
    assert_raises(RuntimeError) { watch.call(failing { raise "out" }, env("/raise")) }
    catch(:out) { watch.call(failing { throw :out }, env("/throw")) }
    assert_raises(Timeout::Error) { watch.call(failing { Timeout.timeout(0.01) { Queue.new.pop } }, env("/timeout")) }
    assert_nil Castellan::Recording.current
    assert_equal ["GET /raise", "GET /throw", "GET /timeout"], watch.findings.map(&:endpoint).sort
  end

  def test_a_body_that_is_made_while_it_is_sent_is_watched_until_it_is_closed
    watch = Castellan::Detect.production(min_ms: 0)
    lazy = Enumerator.new { |yielder| World::User.all.to_a.each { |user| yielder << user.employee.id.to_s } }
    _, _, body = watch.call(->(_env) { [200, {}, lazy] }, env)
    assert_empty watch.findings
    body.to_enum(:each).to_a
    body.close
    assert_equal [5], watch.findings.map(&:queries)
  end

  def test_a_watch_within_a_watch_takes_nothing_from_it
    outer = Castellan::Detect.production(min_ms: 0)
    inner = Castellan::Detect.production(min_ms: 0)
    findings = Castellan::Detect.watch { outer.call(inner.middleware.new(employees), env) }
    assert_equal [[5], [5], [5]], [findings.map(&:count), outer.findings.map(&:queries), inner.findings.map(&:queries)]
  end

  def test_a_request_like_one_that_was_judged_is_only_counted
    watch = Castellan::Detect.production(min_ms: 0, budget: 1000, logger: false, evidence: false)
    limit = 5
    app = watch.middleware.new(->(_env) { [200, {}, [World::User.limit(limit).to_a.count { |user| user.notes.to_a }.to_s]] })
    verdicts = 0
    counted = ->(*arguments, **options) { (verdicts += 1) && Castellan::Detect::Verdict.allocate.tap { |one| one.send(:initialize, *arguments, **options) } }
    Castellan::Detect::Verdict.stub(:new, counted) do
      Production::Judgements::AGAIN.times { Rack::MockRequest.new(app).get("/") }
    end
    assert_equal [1, [[200, 1000, "ActiveRecordWorld::User#notes"]]],
                 [verdicts, watch.findings.map { |entry| [entry.times, entry.queries, entry.finding.association] }]
    Castellan::Detect::Verdict.stub(:new, counted) { Rack::MockRequest.new(app).get("/") }
    assert_equal 2, verdicts
  end

  def test_sixteen_threads_of_a_server_keep_their_requests_apart
    log = Log.new(Queue.new)
    watch = Castellan::Detect.production(min_ms: 0, budget: 1000, logger: log, slow_ms: nil) # a busy machine makes any statement slow
    asked = [*WALKS.keys, "none", "raise"].cycle.first(16 * 24)
    Castellan::TestServers.puma(watch.middleware.new(method(:mixed)), threads: 16) do |base_url|
      asked.each_slice(24).map { |ways| Thread.new { ways.each { |way| ask(base_url, way) } } }.each(&:join)
    end
    expected = WALKS.map { |way, association| ["GET /#{way}", "ActiveRecordWorld::User##{association}", asked.count(way)] }
    found = watch.findings.map { |entry| [entry.endpoint, entry.finding.association, entry.times] }
    assert_equal expected.sort, found.sort, log.to_s
    watch.findings.each { |entry| assert_equal({ p50: 5, p95: 5, p99: 5, max: 5 }, entry.per_request.to_h, entry.endpoint) }
  end

  def test_what_nobody_reads_is_told_with_its_endpoint_until_somebody_reads_it
    heard = []
    watch = Castellan::Detect.production(evidence: 1) { |finding, endpoint| heard << [finding.kind, finding.association, endpoint] }
    19.times { watch.call(in_vain(:to_a), env("/users")) }
    assert_empty watch.findings
    2.times { watch.call(in_vain(:to_a), env("/users")) }
    assert_equal [[:unused_eager_load, "ActiveRecordWorld::User#posts", "GET /users"]], heard
    assert_equal [["GET /users", 2, 2]], watch.findings.map { |entry| [entry.endpoint, entry.times, entry.queries] }
    watch.call(in_vain(->(users) { users.map { |user| user.posts.to_a } }), env("/posts"))
    assert_empty watch.findings
  end

  def test_what_repeated_elsewhere_is_not_told_to_be_loaded_for_nothing
    watch = Castellan::Detect.production(evidence: 1, min_ms: 0)
    watch.call(->(_env) { [200, {}, [World::User.all.to_a.sum { |user| user.posts.size }.to_s]] }, env("/posts"))
    20.times { watch.call(in_vain(:to_a), env("/users")) }
    assert_equal [:n_plus_one], watch.findings.map { |entry| entry.finding.kind }
  end

  def test_evidence_has_a_cost_that_is_reported_and_a_switch
    watch = Castellan::Detect.production(evidence: 1, budget: 0)
    watch.call(in_vain(->(users) { users.map { |user| user.posts.to_a } }), env)
    assert_operator watch.cost[:spent_ns], :>, 0
    watch = Castellan::Detect.production(evidence: false)
    21.times { watch.call(in_vain(:to_a), env) }
    assert_empty watch.findings
    refute_predicate Castellan::Instrument::EagerInstrument, :attached?
  end

  def test_a_mistake_in_counting_is_told_and_ends_the_telling_of_reads
    errors = StringIO.new
    watch = Castellan::Detect.production(evidence: 1)
    mistake = ->(*) { raise "a bug" }
    app = ->(_env) { World::User.where(name: "of a mistake").to_a && [200, {}, []] }
    Castellan::Detect::Tally.stub(:read, mistake) do
      Castellan::Fingerprint.stub(:of, mistake) { watch.call(app, env.merge("rack.errors" => errors)) }
    end
    refute_predicate Castellan::Instrument::EagerInstrument, :attached?
    assert_includes errors.string, "Castellan's detector failed: "
  end

  # Most requests do not ask whether to: as many pass as would have passed.
  def test_reads_are_noted_in_the_requests_that_were_drawn_for_it
    sampled = Castellan::Detect::Evidence::Sampled
    asked = drawn { sampled.new(0.1).then { |one| -> { !one.begin(metered: true).nil? } } }
    watched = drawn do
      watch = Castellan::Detect.production(evidence: 0.1, logger: false)
      -> { watch.call(->(_env) { [Castellan::Instrument::EagerInstrument.attached?, {}, []] }, env).first }
    end
    assert_equal asked, watched
    assert_equal [300, 0], [sampled.new(false).pass(300), sampled.new(1).pass(300)]
  end

  # All but one in sixteen are watched in a shorter way.
  def test_bodies_of_any_kind_are_watched_to_their_end_in_a_stretch
    ids = -> { World::User.all.to_a.map { |user| user.employee.id.to_s } }
    lazy = Enumerator.new { |yielder| ids.call.each { |id| yielder << id } }
    bodies = { "array" => ids, "lazy" => -> { lazy }, "as_array" => -> { Struct.new(:to_ary).new(ids.call) },
               "file" => -> { ids.call && Pathname(__FILE__) } }
    watch = in_a_stretch
    bodies.each do |name, make|
      _, _, body = watch.call(->(_env) { [200, {}, make.call] }, env("/#{name}"))
      body.to_enum(:each).to_a && body.close if name == "lazy"
    end
    assert_equal bodies.keys.map { |name| ["GET /#{name}", 5] }.sort, watch.findings.map { |entry| [entry.endpoint, entry.queries] }.sort
    assert_equal bodies.size + 1, watch.cost[:requests]
  end

  def test_a_request_that_ends_otherwise_is_watched_in_a_stretch
    watch = in_a_stretch
    assert_raises(RuntimeError) { watch.call(failing { raise "out" }, env("/raise")) }
    catch(:out) { watch.call(failing { throw :out }, env("/throw")) }
    assert_nil watch.call(->(_env) {}, env).first
    assert_nil Castellan::Recording.current
    assert_equal [["GET /raise", "GET /throw"], 3], [watch.findings.map(&:endpoint).sort, watch.cost[:requests]]
  end

  def test_what_is_slow_or_asked_in_a_thread_is_judged_in_a_stretch
    watch = in_a_stretch(slow_ms: 0)
    watch.call(->(_env) { [200, {}, [World::User.count.to_s]] }, env("/slow"))
    in_thread = -> { World::Base.connection_pool.with_connection { World::User.all.to_a.each(&:employee) } }
    watch.call(->(_env) { Thread.new(&in_thread).join && [200, {}, []] }, env("/thread"))
    assert_equal [["GET /slow", :slow_query], ["GET /thread", :n_plus_one]],
                 watch.findings.map { |entry| [entry.endpoint, entry.finding.kind] }.sort.uniq(&:first)
  end

  def test_the_breaker_hears_of_a_stretch_when_a_second_is_full
    watch = in_a_stretch(budget: 0)
    { :@spent_ns => 1, :@watched_ns => Production::Breaker::WINDOW_NS }.each { |name, value| watch.instance_variable_set(name, value) }
    2.times { watch.call(->(_env) { [200, {}, []] }, env) }
    assert_predicate watch, :resting?
    assert_equal [2, 1], watch.cost.values_at(:requests, :times_resting)
  end

  def test_one_request_in_thirty_two_is_metered
    watch = Castellan::Detect.production(evidence: false, logger: false)
    tallies = Array.new(65) { watch.call(->(_env) { [Castellan::Recording.current.observer.class, {}, []] }, env).first }
    assert_equal([0, 32, 64], tallies.each_index.select { |index| tallies[index] == Production::MeteredTally })
  end

  def test_another_library_is_listened_to_within_sixteen_requests
    watch = Castellan::Detect.production(evidence: false, logger: false)
    attached = 0
    Castellan::Instrument.stub(:attach, -> { attached += 1 }) { 33.times { watch.call(->(_env) { [200, {}, []] }, env) } }
    assert_equal 3, attached
  end

  def test_what_is_slow_is_for_the_application_to_say
    slow = ->(_env) { [200, {}, [World::User.count.to_s]] }
    watches = [0, nil].map { |slow_ms| Castellan::Detect.production(slow_ms: slow_ms) }
    watches.each { |watch| watch.call(slow, env) }
    assert_equal([[:slow_query], []], watches.map { |watch| watch.findings.map { |entry| entry.finding.kind } })
  end

  # What the watch said in all threads.
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

  def resting(breaker)
    count = 0
    (count += 1) && breaker.rest while breaker.open?
    count
  end

  # @return [Production] that has watched a request
  def in_a_stretch(**options)
    watch = Castellan::Detect.production(min_ms: 0, budget: 1000, logger: false, evidence: false, **options)
    watch.call(->(_env) { [200, {}, []] }, env)
    watch
  end

  # @return [Array] what is answered when it is asked again and again, with the same random numbers each time
  def drawn
    seed = srand(7)
    ask = yield
    Array.new(200) { ask.call }
  ensure
    srand(seed)
    Castellan::Instrument::EagerInstrument.unsubscribe while Castellan::Instrument::EagerInstrument.attached?
  end

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

  # What is done with users whose posts were loaded with them.
  def in_vain(work) = ->(_env) { [200, {}, [work.to_proc.call(World::User.preload(:posts).to_a).size.to_s]] }

  def employees = ->(_env) { [200, {}, [World::User.all.to_a.count(&:employee).to_s]] }

  def env(path = "/") = Rack::MockRequest.env_for(path)

  def get(watch, path, extra = {})
    Rack::MockRequest.new(watch.middleware.new(employees)).get(path, extra).status
  end
end
