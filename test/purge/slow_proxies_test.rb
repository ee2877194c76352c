# frozen_string_literal: true

require "test_helper"
require "serve/journal_requests"
require "support/purged_proxy"
require "support/small_server"

# Two proxies, of which one never answers: the other gets every purge at once, and the first all of them later.
module PurgeSlowProxiesContract
  NAMES = %w[one two three four five].freeze

  def setup
    journal.fill
    @tag = Class.new(journal.models::TagResource) { cache_control s_maxage: 600 }
    @healthy = PurgedProxy.new
    @answer = :hang
    @asked = Queue.new
  end

  def test_a_proxy_that_hangs_delays_no_other_and_gets_all_purges_later
    started(timeout: 2) do
      durations = NAMES.map { |name| seconds { rename(1, name) && reaches(@healthy, "tags/1") } }
      assert_operator durations.max, :<, 1
      assert_equal NAMES.size, notes.size
      @answer = "200 OK"
      eventually { notes.empty? }
    end
    assert_empty @healthy.purged, "it has got each note once"
  end

  def test_a_response_that_does_not_end_is_given_up
    @answer = :drip
    started(timeout: 0.5) do
      rename(1, "one")
      @asked.pop
      assert_equal 1, notes.size
      @answer = "200 OK"
      eventually { notes.empty? }
    end
  end

  def test_a_purge_is_sent_again_while_another_proxy_fails
    @answer = "503 Down"
    started(again_after: 0.1) do
      rename(1, "one")
      2.times { reaches(@healthy, "tags/1") }
      @asked.clear
      eventually { @asked.size > 1 }
      assert_empty @healthy.purged
    end
  end

  def test_a_purge_is_sent_again_while_changes_never_end
    digest = Castellan::Purge::Tags.digests(%w[tags/1]).first
    times = 0
    journal = self.journal
    @healthy.define_singleton_method(:purge) do |tags|
      times += 1 if tags.include?(digest)
      journal.run("INSERT INTO castellan_purges (tags) VALUES ('tags/2')") if times < 2
    end
    @answer = "200 OK"
    started(again_after: 0.05) do
      rename(1, "one")
      eventually { times == 2 }
    end
  end

  # Cloudflare takes 25 requests at once, and then five in a minute.
  def test_a_limit_of_requests_is_reached_with_progress
    left = 0
    api = ->(_env) { [(left -= 1) >= 0 ? 200 : 429, { "retry-after" => "7" }, ["{}"]] }
    Castellan::TestServers.puma(api) do |url|
      @purge = Castellan::Purge.new(journal.source, Castellan::Purge::Cloudflare.new(zone: "z", token: "t", url: url), again_after: nil)
      @purge.install(@tag)
      journal.run("INSERT INTO castellan_purges (tags) VALUES #{(1..450).map { |id| "('tags/#{id}')" }.join(", ")}")
      remaining = [2, 2].map do |limit|
        left = limit
        error = assert_raises(Castellan::Purge::Error) { @purge.call }
        assert_equal [7, -1], [error.retry_after, left]
        notes.size
      end
      left = 1
      assert_equal [250, 50, 50], [*remaining, @purge.call]
    end
  end

  def test_nothing_is_lost_when_the_process_ends_while_a_proxy_fails
    @answer = "503 Down"
    started { rename(1, "one") && reaches(@healthy, "tags/1") }
    @answer = "200 OK"
    @asked.clear
    started { eventually { notes.empty? } }
    assert_equal 1, @asked.size
  end

  def test_a_transaction_that_commits_late_is_purged_while_another_proxy_fails
    @answer = "503 Down"
    started do
      note(5_000, "tags/1")
      note(2, "tags/2")
      note(5_001, "tags/3")
    end
  end

  private

  def started(timeout: 5, again_after: nil)
    answer = lambda do |method, _path|
      @asked << method
      @answer
    end
    Castellan::SmallServer.open(answer) do |url|
      proxies = [Castellan::Purge::Varnish.new(url, timeout: timeout), @healthy]
      @purge = Castellan::Purge.new(journal.source, proxies, again_after: again_after, log: ->(_line) {})
      @purge.install(@tag)
      @purge.start
      yield
      @purge.stop
    end
  end

  def teardown
    @purge.stop
    @purge.uninstall(@tag)
  end

  def rename(id, name) = journal.run("UPDATE tags SET name = '#{name}' WHERE id = #{id}") || true

  def note(id, tag)
    journal.run("INSERT INTO castellan_purges (id, tags) VALUES (#{id}, '#{tag}')")
    reaches(@healthy, tag)
  end

  def reaches(proxy, tag)
    eventually { proxy.purged.include?(Castellan::Purge::Tags.digests([tag]).first) }
    proxy.purged.clear
  end

  def notes = journal.rows("SELECT id FROM castellan_purges")

  def seconds
    before = Castellan::Clock.monotonic_ns
    yield
    (Castellan::Clock.monotonic_ns - before) / 1e9
  end
end

JournalRequests.on_every_database(PurgeSlowProxiesContract)
