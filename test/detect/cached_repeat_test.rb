# frozen_string_literal: true

require_relative "active_record_world"
require_relative "sequel_world"
require "castellan/doctor"

class DetectCachedRepeatTest < Minitest::Test
  include Castellan::Detect::Assertions

  World = ActiveRecordWorld

  def test_a_repeated_query_cache_hit_is_a_finding_with_line_and_cost
    finding = only { World::Base.cache { 20.times { World::User.find_by(name: "user 1") } } }
    assert_equal [:cached_repeat, 19, "test/detect/cached_repeat_test.rb:#{__LINE__ - 1}"], finding.to_a.values_at(0, 1, 4)
    assert_operator finding.total_ns, :positive?
    assert_operator finding.objects, :>=, 19 * 5
    assert_nil finding.fix
    assert_match(/\Acached_repeat: 19 queries at \S+, answered by the query cache for at most [\d.]+ ms and \d+ objects; no fix: .*memoize/,
                 finding.to_s)
    refute_predicate finding, :repeats?
  end

  def test_a_preload_is_suggested_for_cached_association_queries
    finding = only { World::Base.cache { World::Comment.where(author_id: 1).map { |comment| comment.author.name } } }
    assert_equal [:cached_repeat, 5, "ActiveRecordWorld::Comment#author"], [finding.kind, finding.count, finding.association]
    assert_equal finding.location, finding.parent_location
    assert_includes finding.fix_refused, "or preload author where the comments are loaded"
  end

  def test_queries_that_were_sent_repeatedly_name_the_cached_ones_in_their_own_finding
    twice = ->(user) { Array.new(2) { user.association(:employee).reload.target } }
    finding = only { World::Base.cache { World::User.all.map(&twice) } }
    assert_equal [:n_plus_one, 5, 5], [finding.kind, finding.count, finding.cached_count]
  end

  def test_single_cache_hits_and_hits_at_different_lines_are_no_finding
    assert_empty(watch { World::Base.cache { 2.times { World::User.first } } })
    assert_empty(watch do
      World::Base.cache do
        World::User.first
        World::User.first
        World::User.first
      end
    end)
    assert_empty(watch { World::Base.cache { [World::User.find(1), World::User.find(1), World::User.find(1)] } })
  end

  def test_assertions_fail_for_cache_hits_only_on_request
    work = -> { World::Base.cache { 3.times { World::User.first } } }
    assert_no_repeated_queries(&work)
    error = assert_raises(Minitest::Assertion) { assert_no_repeated_queries(cached: true, &work) }
    assert_includes error.message, "cached_repeat: 2 queries at test/detect/cached_repeat_test.rb:"
  end

  def test_the_middleware_reports_cache_hits_of_every_request
    work = ->(_env) { World::Base.cache { 3.times { World::User.first } } && [200, {}, []] }
    reported = []
    app = Castellan::Detect::Middleware.new(work, environment: "test", slow_ms: nil) { |findings, _env| reported.concat(findings) }
    headers = Array.new(3) { app.call({})[1] }
    assert_equal [%i[cached_repeat] * 3, [2] * 3], [reported.map(&:kind), reported.map(&:count)]
    headers.each { |header| assert_match(/\Acached_repeat 2 test\S+\z/, header["castellan-findings"]) }
    reported.each { |finding| assert_operator finding.total_ns, :positive? }
  ensure
    Castellan::Instrument.unsubscribe
  end

  def test_production_counts_cached_answers
    watch = Castellan::Detect.production(sample: 1.0, threshold: 3, min_ms: 0, slow_ms: nil, logger: false)
    app = watch.middleware.new(->(_env) { World::Base.cache { 5.times { World::User.first } } && [200, {}, []] })
    2.times { app.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/users" }) }
    assert_equal [[:cached_repeat, 2, 8]], watch.findings.map { |entry| [entry.finding.kind, entry.times, entry.queries] }
  ensure
    watch&.stop
  end

  def test_sequel_has_no_query_cache
    assert_equal [:duplicate], watch { 3.times { SequelWorld::User.first } }.map(&:kind)
  end

  private

  def watch(&work) = Castellan::Detect.watch(slow_ms: nil, &work)

  def only(&work)
    findings = watch(&work)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end
end
