# frozen_string_literal: true

require_relative "../active_record_world"
require "castellan/instrument/threads"
require "rack/mock_request"
require "timeout"

# Sixteen threads send requests through two nested middlewares. Each request reads one association in one way
# and ends in one way; its findings must be exactly those.
class DetectProductionStressTest < Minitest::Test
  World = ActiveRecordWorld
  WALK = lambda do |association|
    World::User.all.to_a.each { |user| user.public_send(association).inspect && Thread.pass }
  end
  WAYS = {
    "here" => WALK,
    "fiber" => ->(association) { Fiber.new { WALK.call(association) }.resume },
    "enumerator" => ->(association) { Enumerator.new { |yielder| yielder << WALK.call(association) }.next },
    "thread" => ->(association) { Thread.new { World::Base.connection_pool.with_connection { WALK.call(association) } }.join },
    "none" => ->(_association) { World::User.count }
  }.freeze
  ENDINGS = { "well" => -> {}, "raise" => -> { raise "out" }, "throw" => -> { throw :out },
              "timeout" => -> { Timeout.timeout(0.005) { Queue.new.pop } } }.freeze
  PATHS = WAYS.keys.product(%w[employee tokens posts notes], ENDINGS.keys).map { |parts| "/#{parts.join("/")}" }.freeze
  TIMES = 3

  def teardown
    Castellan::Instrument.unsubscribe while Castellan::Instrument.subscribed?
  end

  def test_no_finding_of_one_request_is_in_another
    outer, inner = [0.3, false].map do |evidence|
      Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil, logger: false, evidence: evidence)
    end
    assert_empty left_open(outer, inner.middleware.new(method(:answer)))
    [outer, inner].each { |watch| assert_equal expected, found(watch) }
    refute_predicate Castellan::Instrument::EagerInstrument, :attached?
  end

  private

  def answer(env)
    _, way, association, ending = env["PATH_INFO"].split("/")
    WAYS.fetch(way).call(association)
    ENDINGS.fetch(ending).call
    [200, {}, ["done"]]
  end

  # @return [Array<String>] the requests that left a recording open
  def left_open(watch, app)
    paths = Queue.new
    (PATHS * TIMES).shuffle(random: Random.new(1)).each { |path| paths << path }
    paths.close
    threads = Array.new(16) { Thread.new { [].tap { |open| send_all(watch, app, paths, open) } } }
    threads.flat_map(&:value)
  end

  def send_all(watch, app, paths, open)
    while (path = paths.pop)
      send_one(watch, app, path)
      open << path if Castellan::Recording.current
    end
  end

  def send_one(watch, app, path)
    catch(:out) { watch.call(app, Rack::MockRequest.env_for(path)) }
  rescue RuntimeError => error # a Timeout::Error is one
    error
  end

  def expected
    PATHS.grep_v(%r{\A/none/}).map { |path| ["GET #{path}", "ActiveRecordWorld::User##{path.split("/")[2]}", TIMES, 5 * TIMES] }.sort
  end

  def found(watch)
    watch.findings.map { |entry| [entry.endpoint, entry.finding.association, entry.times, entry.queries] }.sort
  end
end
