# frozen_string_literal: true

require "test_helper"
require "castellan/detect"
require_relative "profile_world"

# The detector's findings over many requests, on the page of profiles.
class ProfileEvidenceTest < Minitest::Test
  include ProfileWorld

  def setup
    super
    @evidence = Castellan::Detect::Evidence.new(1, requests: 3)
    @detectors = 0
  end

  # A detector listens as long as its process lives.
  def teardown
    @detectors.times { Castellan::Instrument.unsubscribe }
    super
  end

  # A detector and a profiler around an application that loads authors and never reads them.
  def serve(evidence: @evidence, detected: @evidence, &work)
    work ||= -> { Book.preload(:author).map(&:title) }
    @detectors += 1
    inner = ->(_env) { [200, { "content-type" => "application/json" }, [work.call.to_s]] }
    profiled(Castellan::Detect::Middleware.new(inner, evidence: detected, logger: Logger.new(@log)), evidence: evidence)
  end

  def shown = get("/castellan").body

  def test_an_unused_eager_load_is_on_the_page_with_line_and_fix
    serve
    2.times { get("/books") }
    refute_includes shown, "over many requests"
    get("/books")
    page = shown
    assert_includes page, '<a href="#evidence">1 finding over many requests</a>'
    assert_match(/ProfileWorld::Book#author.*loaded eagerly and never read/, page)
    assert_includes page, "<b>3 requests</b> were looked at, of 12 records on average"
    assert_match(/take :author out of what is loaded with the books at test.profile.evidence_test\.rb:\d+: no code read it/, page)
    assert_includes page, "Book.preload(:author).map(&amp;:title)"
  end

  def test_the_finding_disappears_when_a_request_reads_the_association
    serve { Book.preload(:author).map { |book| book.author.name if @read } }
    4.times { get("/books") }
    assert_includes shown, "over many requests"
    @read = true
    get("/books")
    refute_includes shown, "over many requests"
  end

  def test_only_authorised_requests_display_the_findings
    serve
    3.times { get("/books") }
    @middleware = Castellan::Profile::Middleware.new(->(_env) { [404, {}, ["none"]] }, environment: "production", evidence: @evidence)
    assert_equal [404, "none"], [get("/castellan").status, shown]
  end

  def test_the_page_works_without_evidence_and_if_it_fails
    serve(evidence: nil)
    4.times { get("/books") }
    refute_includes shown, "over many requests"
    failing = Class.new { def findings = raise("the database is gone") }.new
    serve(evidence: failing)
    assert_equal 200, get("/castellan").status
    assert_includes @log.string, "the database is gone"
  end

  def test_findings_of_production_are_displayed
    watch = Castellan::Detect.production(sample: 1, evidence: 1, logger: false)
    app = watch.middleware.new(->(_env) { [200, {}, [Book.preload(:author).map(&:title).to_s]] })
    profiled(app, evidence: watch.evidence)
    20.times { get("/books") }
    assert_includes shown, "<b>20 requests</b> were looked at"
  ensure
    watch&.stop
  end

  def test_an_invalid_evidence_raises_at_boot
    error = assert_raises(Castellan::ConfigurationError) { profiled(evidence: 0.1) { "ok" } }
    assert_includes error.message, "evidence: must be a Castellan::Detect::Evidence"
  end
end
