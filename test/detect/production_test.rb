# frozen_string_literal: true

require_relative "active_record_world"
require "rack"
require "rack/mock_request"

class DetectProductionTest < Minitest::Test
  World = ActiveRecordWorld

  def teardown
    Castellan::Instrument.unsubscribe while Castellan::Instrument.subscribed?
  end

  def test_findings_are_added_up_by_endpoint_and_association
    heard = []
    watch = Castellan::Detect.production(threshold: 5, min_ms: 0) { |finding, endpoint| heard << [finding.association, endpoint] }
    [1, 2, 3].each { |id| assert_equal 200, get(watch, "/teams/#{id}/users") }
    entry = watch.findings.first
    assert_equal ["GET /teams/:id/users", 3, 15], [entry.endpoint, entry.times, entry.queries]
    assert_equal [["ActiveRecordWorld::User#employee", "GET /teams/:id/users"]], heard
  end

  def test_too_few_or_too_quick_repeats_are_no_finding
    [{ threshold: 6, min_ms: 0 }, { threshold: 5, min_ms: 60_000 }].each do |limits|
      watch = Castellan::Detect.production(**limits)
      get(watch, "/")
      assert_empty watch.findings
    end
  end

  def test_it_stays_bounded
    watch = Castellan::Detect.production(min_ms: 0, budget: 1000)
    (Castellan::Detect::Production::MOST + 20).times { |number| get(watch, "/path#{number}") }
    assert_equal Castellan::Detect::Production::MOST, watch.findings.size
  end

  def test_it_knows_its_own_cost_and_rests_past_its_budget
    watch = Castellan::Detect.production(min_ms: 0, budget: 0)
    get(watch, "/")
    assert_operator watch.spent_ns, :>, 0
    refute_predicate watch, :resting?
    watch.send(:spend, 1, 2_000_000_000)
    assert_predicate watch, :resting?
    Castellan::Detect::Production::REST.times { get(watch, "/rest") }
    refute_predicate watch, :resting?
    assert_equal ["GET /"], watch.findings.map(&:endpoint)
  end

  def test_a_share_that_is_none_is_refused
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Detect.production(sample: 0) }
    assert_includes error.message, "sample: must be above 0"
    assert_raises(Castellan::ConfigurationError) { Castellan::Detect.production(threshold: 1) }
  end

  def test_an_error_passes_and_closes_the_recording
    watch = Castellan::Detect.production
    assert_raises(RuntimeError) { watch.call(->(_env) { raise "out" }, {}) }
    assert_nil Castellan::Recording.current
  end

  private

  def get(watch, path)
    app = watch.middleware.new(->(_env) { [200, {}, [World::User.all.to_a.count(&:employee).to_s]] })
    Rack::MockRequest.new(app).get(path).status
  end
end
