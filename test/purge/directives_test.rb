# frozen_string_literal: true

require "test_helper"
require "support/printed_proxies"

# The directives of `cache_control` that nginx, Varnish and HAProxy follow, as in the table of docs/proxies.md.
class PurgeDirectivesTest < Minitest::Test
  include PrintedProxies

  # HAProxy and nginx count whole seconds, so a document lives between one and two seconds.
  DECLARED = {
    "max_age" => { max_age: 2 },
    "s_maxage" => { max_age: 60, s_maxage: 2 },
    "longer_s_maxage" => { max_age: 2, s_maxage: 60 },
    "revalidate" => { s_maxage: 2, stale_while_revalidate: 60 },
    "if_error" => { s_maxage: 2, stale_if_error: 60 },
    "both" => { s_maxage: 2, stale_while_revalidate: 60, stale_if_error: 600 },
    "short" => { s_maxage: 2, stale_while_revalidate: 1, stale_if_error: 1 },
    "short_revalidate" => { s_maxage: 2, stale_while_revalidate: 1, stale_if_error: 60 },
    "cdn" => { cdn: { max_age: 60 } },
    "cdn_stale" => { cdn: { max_age: 2, stale_while_revalidate: 60, stale_if_error: 600 } },
    "short_cdn" => { s_maxage: 60, cdn: { max_age: 2 } },
    "no_cdn" => { s_maxage: 60, cdn: { stale_if_error: 60 } }
  }.transform_values { |options| Castellan::HTTP::CacheControl.new(**options).shared }
             .merge("unsaid" => { "cache-control" => "max-age=60" },
                    "without_lifetime" => { "cache-control" => "public", "etag" => '"a"' }, "without_fields" => {},
                    "no_store" => { "cache-control" => "max-age=60, no-store, public" },
                    "private_cdn" => { "cache-control" => "private, max-age=60", "cdn-cache-control" => "max-age=60" }).freeze

  # The responses at once, after the lifetime, to 503 of the application, and to a connection that it closes.
  COMMON = { "max_age" => %i[hit new error error], "s_maxage" => %i[hit new error error],
             "longer_s_maxage" => %i[hit hit hit hit], "short" => %i[hit new error error],
             "private_cdn" => %i[new new error error], "without_lifetime" => %i[new new error error],
             "without_fields" => %i[new new error error], "no_store" => %i[new new error error] }.freeze
  # For nginx, only a configuration printed from the application's file follows CDN-Cache-Control.
  CDN = { "cdn" => %i[hit hit hit hit], "short_cdn" => %i[hit new error error], "no_cdn" => %i[new new error error] }.freeze
  IGNORED_CDN = { "cdn" => %i[new new error error], "cdn_stale" => %i[new new error error],
                  "short_cdn" => %i[hit hit hit hit], "no_cdn" => %i[hit hit hit hit] }.freeze

  def setup
    @number = 0
    @lock = Mutex.new
    @failing = @slow = nil
  end

  # nginx follows stale-if-error only if the application sends no response at all.
  def test_nginx_follows_declared_lifetimes_and_stale_while_revalidate
    behind("nginx") do |url|
      assert_responses url, "revalidate" => %i[hit hit hit hit], "both" => %i[hit hit hit hit],
                            "if_error" => %i[hit new error hit], **IGNORED_CDN
    end
  end

  def test_nginx_names_expired_and_stale_documents_in_cache_status
    behind("nginx") do |url|
      2.times { assert_match(/MISS|HIT/, get(url, "s_maxage")["cache-status"]) }
      get(url, "revalidate")
      sleep 3.1
      assert_equal "nginx; detail=EXPIRED", get(url, "s_maxage")["cache-status"]
      assert_equal "nginx; detail=STALE", get(url, "revalidate")["cache-status"]
    end
  end

  def test_varnish_follows_declared_lifetimes_and_both_stale_directives
    behind("varnish") do |url|
      assert_responses url, "revalidate" => %i[hit hit hit hit], "both" => %i[hit hit hit hit],
                            "if_error" => %i[hit new hit hit], "cdn_stale" => %i[hit hit hit hit], **CDN
    end
  end

  def test_varnish_sends_stale_documents_to_simultaneous_clients_and_recovers
    behind("varnish") do |url|
      old = %w[if_error short_revalidate].to_h { |name| [name, get(url, name).body] }
      sleep 4.1
      @failing = 0.3
      old.each do |name, body|
        assert_equal [body] * 8, Array.new(8) { Thread.new { get(url, name).body } }.map(&:value), name
      end
      @failing = nil
      old.each { |name, body| refute_equal body, get(url, name).body }
    end
  end

  def test_varnish_never_sends_a_purged_document_while_the_application_fails
    behind("varnish") { |url| assert_purged_for_good(url) }
  end

  def test_varnish_with_xkey_never_sends_a_purged_document_while_the_application_fails
    needs :xkey
    behind("varnish", "--xkey") { |url| assert_purged_for_good(url) }
  end

  def test_varnish_does_not_obey_a_client_that_sends_its_internal_field
    behind("varnish") do |url|
      old = get(url, "if_error").body
      sleep 3.1
      refute_equal old, get(url, "if_error", "castellan-stale" => "failed").body
      @failing = true
      assert_equal "503", get(url, "s_maxage", "castellan-stale" => "if-error").code
    end
  end

  def test_haproxy_follows_declared_lifetimes_and_never_sends_stale_documents
    behind("haproxy") do |url|
      assert_responses url, "revalidate" => %i[hit new error error], "both" => %i[hit new error error],
                            "if_error" => %i[hit new error error], "cdn_stale" => %i[hit new error error], **CDN
      assert_equal "HAProxy; hit", get(url, "longer_s_maxage")["cache-status"]
      assert_equal "HAProxy; fwd=miss", get(url, "private_cdn")["cache-status"]
    end
  end

  # RFC 9111, section 3.5. HAProxy never sends a stored answer to such clients.
  def test_clients_with_authorization_share_what_the_application_declares_public
    { "nginx" => 1, "varnish" => 1, "haproxy" => 3 }.each do |kind, answers|
      behind(kind) do |url|
        bodies = %w[longer_s_maxage unsaid].map do |name|
          %w[one another one].map { |token| get(url, name, "authorization" => "Bearer #{token}").body }.uniq.size
        end
        assert_equal [answers, 3], bodies, kind
        refute_equal get(url, "unsaid", "authorization" => "Bearer one").body, get(url, "unsaid").body, kind
      end
    end
  end

  # For nginx, only declared paths let clients wait (see rest_test.rb).
  # The requests that 8 clients cause: of a missing document, an expired one, and one with stale-while-revalidate.
  def test_simultaneous_requests_for_one_document
    { "nginx" => [:many, :many, 1], "varnish" => [1, 1, 1], "haproxy" => %i[many many many] }.each do |kind, expected|
      behind(kind) do |url|
        counts = [count(url, "s_maxage")]
        count(url, "revalidate")
        sleep 3.1
        assert_equal expected, counts + [count(url, "s_maxage"), count(url, "revalidate")], kind
      end
    end
  end

  private

  # Waits for the request in the background as well.
  def count(url, name)
    @slow = 0.4
    before = @number
    Array.new(8) { Thread.new { get(url, name) } }.each(&:join)
    sleep 0.5
    @number - before > 1 ? :many : 1
  ensure
    @slow = nil
  end

  def behind(kind, *options, &block)
    Castellan::TestServers.puma(method(:answer), threads: 16) { |url| with_proxy(kind, URI(url).port, *options, &block) }
  end

  def assert_purged_for_good(url)
    %w[revalidate if_error].each { |name| get(url, name) }
    sleep 3.1
    Castellan::Purge::Varnish.new(url).purge(%w[a])
    @failing = true
    %w[revalidate if_error].each { |name| assert_equal "503", get(url, name).code }
  end

  def answer(env)
    env["rack.hijack"].call.close if @failing == :closed
    if @failing
      sleep @failing if @failing.is_a?(Numeric)
      return [503, { "content-type" => "text/plain" }, ["down"]]
    end

    fields = { "content-type" => "application/json", "cache-tag" => "a", "surrogate-key" => "a" }
    number = @lock.synchronize { @number += 1 }
    sleep @slow if @slow
    [200, fields.merge(DECLARED.fetch(env["PATH_INFO"][1..])), ["v#{number}"]]
  end

  def assert_responses(url, expected)
    expected = COMMON.merge(expected)
    bodies = -> { expected.to_h { |name, _| [name, get(url, name)] } }
    first, soon = within_a_lifetime(bodies)
    healthy = [soon, sleep(4.1) && bodies.call]
    sleep 4.1
    failing = [true, :closed].map { |failing| (@failing = failing) && bodies.call }
    seen = expected.to_h do |name, _|
      old = healthy.map { |responses| responses[name].body == first[name].body ? :hit : :new }
      [name, old + failing.map { |responses| responses[name].code == "200" ? :hit : :error }]
    end
    assert_equal expected, seen
    assert_fields_for_browsers(failing.last["cdn"]) unless seen["cdn"].last == :error
    fields = failing.flat_map(&:values).flat_map { |response| response.to_hash.keys }
    assert_empty fields & %w[cache-tag surrogate-key castellan-revalidate castellan-if-error castellan-tags
                             castellan-cdn castellan-control]
  end

  # The shortest lifetime is a second, which a slow machine may need for so many requests. Each attempt has URLs of
  # its own, because stale documents of the one before would still be sent.
  def within_a_lifetime(bodies)
    20.times do |attempt|
      @query = "?#{attempt}"
      started_ns = Castellan::Clock.monotonic_ns
      found = [bodies.call, bodies.call]
      return found if Castellan::Clock.monotonic_ns - started_ns < 900_000_000
    end
    flunk "this machine needs more than 0.9 seconds for #{DECLARED.size} requests"
  end

  # A proxy that follows CDN-Cache-Control leaves the other field to browsers, and both to a CDN in front of it.
  def assert_fields_for_browsers(response)
    assert_equal DECLARED["cdn"], response.to_hash.slice(*DECLARED["cdn"].keys).transform_values(&:first)
  end

  def get(url, name, fields = {})
    Net::HTTP.get_response(URI("#{url}/#{name}#{@query}"), "accept" => "*/*", **fields)
  end
end
