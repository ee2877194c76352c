# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "serve/journal_requests"
require "support/purged_proxy"
require "support/small_server"

# A purge that does not reach a proxy, and URLs that a client can send to a server that notes them.
module PurgeRefreshContract
  include JournalRequests

  def setup
    journal.fill
    @tag = Class.new(journal.models::TagResource) { cache_control s_maxage: 600 }
  end

  def teardown
    @purge.uninstall(@tag)
  end

  def test_a_proxy_that_is_away_does_not_keep_another_from_later_purges
    proxies = [PurgedProxy.new, PurgedProxy.new]
    purge(proxies)
    proxies.first.away = true
    600.times { |number| journal.run("UPDATE tags SET name = 'sql #{number}' WHERE id = 2") }
    journal.run("UPDATE tags SET name = 'web' WHERE id = 3")
    assert_raises(Castellan::Purge::Error) { @purge.call }
    assert_includes proxies.last.purged, Castellan::Purge::Tags.digests(%w[tags/3]).first
    proxies.first.away = false
    @purge.call
    assert_includes proxies.first.purged, Castellan::Purge::Tags.digests(%w[tags/3]).first
    assert_empty journal.rows("SELECT * FROM castellan_purges")
  end

  # The answers to GET and to PURGE of /tags/2, those of other URLs, and whether the purge succeeds; nil closes the connection.
  ANSWERS = [["404 Not Found", "200 OK", "200 OK", true], ["429 Slow", "200 OK", "200 OK", true], [nil, "200 OK", "200 OK", true],
             ["200 OK", "200 OK", "200 OK", true], ["500 Failed", "500 Failed", "404 Not Found", false],
             [nil, nil, "404 Not Found", false]].freeze

  def test_a_url_that_fails_is_purged_and_does_not_keep_others_from_it
    ANSWERS.each do |fresh, purged, others, succeeds|
      sent = Hash.new { |all, path| all[path] = [] }
      answer = lambda do |method, path|
        sent[path] << method
        { %w[GET /tags/2] => fresh, %w[PURGE /tags/2] => purged }.fetch([method, path]) { method == "GET" ? others : "200 OK" }
      end
      Castellan::SmallServer.open(answer) { |url| assert_purges(url, succeeds) }
      assert_equal %w[/tags/1 /tags/2 /tags/3], sent.keys.sort
      assert_equal fresh == "200 OK" ? %w[GET] : %w[GET PURGE], sent["/tags/2"]
      assert_includes [%w[PURGE], others == "200 OK" ? %w[GET] : %w[GET PURGE]], sent["/tags/1"]
      @purge.uninstall(@tag)
    end
  end

  def test_of_many_documents_a_purge_requests_a_hundred_and_removes_the_others
    assert_equal({ "GET" => 100, "PURGE" => 20 }, sent_for(120).tally)
  end

  def test_of_an_application_that_is_slow_a_purge_requests_documents_for_a_second_and_removes_the_others
    assert_equal({ "GET" => 4, "PURGE" => 16 }, sent_for(20, nanoseconds: 300_000_000).tally)
  end

  def test_the_url_of_a_popular_document_is_written_once_a_day
    purge([Castellan::Purge::Refresh.new("http://127.0.0.1:1")])
    noted = lambda do |seconds_ago|
      journal.run("UPDATE castellan_urls SET at = at - #{seconds_ago}")
      before = journal.rows("SELECT at FROM castellan_urls")
      get("/tags/3")
      journal.rows("SELECT at FROM castellan_urls") == before
    end
    get("/tags/3")
    assert_equal [true, false, true], [noted[86_000], noted[1_000], noted[0]]
  end

  # An index of PostgreSQL takes 2,704 bytes, and texts are UTF-8.
  def test_what_cannot_be_noted_is_not_kept
    purge([Castellan::Purge::Refresh.new("http://127.0.0.1:1")])
    assert_equal "public, s-maxage=600", get("/tags/3").first["cache-control"]
    random = Random.new(1)
    long = Array.new(2_000) { random.bytes(4).unpack1("H*") }.join(",")[0, 6_000]
    [{ "HTTP_ACCEPT" => "application/vnd.api+json, text/x;a=\"#{long}\"" }, { "HTTP_HOST" => "\xff".b }, { "HTTP_HOST" => nil },
     { "REQUEST_URI" => "http://example.org/tags/3" }, { "REQUEST_URI" => "/tags/3#x" }].each do |fields|
      response = request("GET", "/tags/3", **fields.transform_keys(&:to_sym))
      assert_equal [200, "public, no-cache", nil], [response.status, response["cache-control"], response["surrogate-key"]]
    end
  end

  # A migration that removes the triggers runs before the old processes end.
  def test_a_document_is_sent_and_not_kept_after_another_process_has_uninstalled_the_triggers
    purge([Castellan::Purge::Refresh.new("http://127.0.0.1:1")])
    assert_equal "public, s-maxage=600", request("GET", "/tags/3")["cache-control"]
    Castellan::Purge.new(journal.source, PurgedProxy.new).uninstall(@tag)
    2.times do
      response = request("GET", "/tags/3")
      assert_equal [200, "public, no-cache", nil], [response.status, response["cache-control"], response["surrogate-key"]]
    end
    @purge.install(@tag)
    assert_equal "public, s-maxage=600", request("GET", "/tags/3")["cache-control"]
  end

  # A proxy that asks after the purge would keep the bytes of before.
  def test_what_may_be_stale_is_not_kept
    before = Castellan.keeper
    versions = Castellan::Versions::ExactVersions.new(journal.source)
    versions.install(%w[tags taggings posts writers])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    broken = false
    @tag = Class.new(@tag) do
      # Only what has a name is kept.
      def self.name = "StaleTagResource"
      cache :exact, stale_if_error: 60
      attribute(:state, pure: true, columns: [:name]) { |_record| broken ? raise("broken") : "fine" }
    end
    purge([PurgedProxy.new])
    old = request("GET", "/tags/3").body
    journal.run("UPDATE tags SET name = 'web' WHERE id = 3")
    @purge.call
    broken = true
    response = request("GET", "/tags/3")
    assert_equal [old, "public, no-cache", nil], [response.body, response["cache-control"], response["surrogate-key"]]
  ensure
    Castellan.keeper = before
    versions.uninstall(%w[tags taggings posts writers])
  end

  private

  # @param nanoseconds [Integer] for each document that the application renders again
  # @return [Array<String>] the methods of the requests that a purge of so many documents sends
  def sent_for(documents, nanoseconds: 0)
    sent = []
    now_ns = 0
    answer = lambda do |method, _path|
      sent << method
      now_ns += nanoseconds if method == "GET"
      "200 OK"
    end
    Castellan::SmallServer.open(answer) do |url|
      purge([Castellan::Purge::Refresh.new(url)])
      documents.times { |number| request("GET", "/tags/2", HTTP_HOST: "#{number}.example.org") }
      journal.run("UPDATE tags SET name = 'x' WHERE id = 2")
      Castellan::Clock.stub(:monotonic_ns, -> { now_ns }) { @purge.call }
    end
    sent
  end

  def assert_purges(url, succeeds)
    purge([Castellan::Purge::Refresh.new(url)])
    %w[/tags/1 /tags/2 /tags/3].each { |path| assert_equal 200, request("GET", path).status }
    journal.run("UPDATE tags SET name = name || 'x'")
    return @purge.call if succeeds

    assert_includes assert_raises(Castellan::Purge::Error) { @purge.call }.message, "PURGE /tags/2 with"
  end

  def request(method, path, **fields) = super(method, path, HTTP_HOST: "example.org", **fields)

  def purge(proxies)
    purge = @purge = Castellan::Purge.new(journal.source, proxies, again_after: nil, log: ->(_line) {})
    @purge.install(@tag)
    tag = @tag
    @app = Castellan.app do
      resource tag
      purge purge
    end
  end
end

JournalRequests.on_every_database(PurgeRefreshContract)
