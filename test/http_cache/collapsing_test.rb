# frozen_string_literal: true

require "test_helper"
require "delegate"
require "net/http"
require "rack/files"
require "support/cached_application"

# RFC 9111 §4: collapsed requests, over real HTTP; and bodies of all kinds.
class HTTPCacheCollapsingTest < Minitest::Test
  FRESH = { "cache-control" => "max-age=60" }.freeze

  # Counts the requests that reach the application, and lets the first one wait until the others are there.
  class SlowApplication
    attr_reader :count

    def initialize(readers, &answer)
      @readers = readers
      @answer = answer
      @count = 0
      @lock = Mutex.new
      @arrived = 0
      @all_there = ConditionVariable.new
      @counted = ConditionVariable.new
    end

    # Stands outside of the cache, and sees each request arrive.
    def outside(cache)
      lambda do |env|
        @lock.synchronize do
          @arrived += 1
          @all_there.broadcast
        end
        cache.call(env)
      end
    end

    # @return [void] after the next request has reached the application, or after so many seconds
    def wait_for_another(seconds)
      @lock.synchronize { @counted.wait(@lock, seconds) }
    end

    def call(env)
      number = @lock.synchronize do
        @counted.broadcast
        @count += 1
      end
      @lock.synchronize { @all_there.wait(@lock, 10) until @arrived >= @readers } if number == 1
      @answer.call(env, number)
    end
  end

  def test_64_simultaneous_cold_readers_are_one_request
    application = SlowApplication.new(64) { |_env, number| [200, FRESH.dup, ["answer #{number}"]] }
    answers = read_by_64(application)
    assert_equal [["200", "answer 1"]], answers.map { |answer| [answer.code, answer.body] }.uniq
    assert_equal 1, application.count
    notes = answers.map { |answer| answer["cache-status"] }
    assert_equal ["Castellan; fwd=uri-miss; stored"], notes.grep(/stored/)
    assert_equal 63, notes.grep(/collapsed|hit/).size
  end

  def test_readers_of_a_private_response_share_nothing
    application = SlowApplication.new(64) { |_env, number| [200, { "cache-control" => "private, max-age=60" }, ["answer #{number}"]] }
    answers = read_by_64(application)
    assert_equal 64, answers.map(&:body).uniq.size
    assert_equal 64, application.count
  end

  def test_readers_of_other_variants_share_nothing
    application = SlowApplication.new(64) { |env, _| [200, FRESH.merge("vary" => "reader"), [env["HTTP_READER"]]] }
    answers = read_by_64(application)
    assert_equal((0...64).map(&:to_s), answers.map(&:body))
    assert_equal 64, application.count
  end

  # The second request takes half a second, in which the others would reach the application if they did not wait.
  def test_readers_of_two_variants_are_two_requests
    application = SlowApplication.new(64) do |env, number|
      application.wait_for_another(0.5) if number == 2
      [200, FRESH.merge("vary" => "reader"), [env["HTTP_READER"]]]
    end
    answers = read_by_64(application) { |number| { "Reader" => (number % 2).to_s } }
    assert_equal(%w[0 1] * 32, answers.map(&:body))
    assert_equal 2, application.count
  end

  def test_readers_with_credentials_share_nothing
    application = SlowApplication.new(64) { |env, _| [200, FRESH.dup, [env["HTTP_AUTHORIZATION"]]] }
    answers = read_by_64(application) { |number| { "Authorization" => "Bearer #{number}" } }
    assert_equal((0...64).map { |number| "Bearer #{number}" }, answers.map(&:body))
  end

  def test_a_failure_is_never_shared
    application = SlowApplication.new(64) { |_env, number| number == 1 ? [500, {}, ["failed"]] : [200, FRESH.dup, ["fine"]] }
    answers = read_by_64(application)
    assert_equal({ "500" => 1, "200" => 63 }, answers.map(&:code).tally)
  end

  def test_after_a_failure_the_others_wait_once_more
    [-> { [500, {}, ["failed"]] }, -> { raise IOError, "away" }].each do |failure|
      application = SlowApplication.new(64) do |_env, number|
        number == 1 ? failure.call : [200, FRESH.dup, ["fine"]].tap { sleep 0.3 }
      end
      assert_equal({ "500" => 1, "200" => 63 }, read_by_64(application).map(&:code).tally)
      assert_operator application.count, :<, 8
    end
  end

  # While the application fails, it is spared as well.
  [
    ["a_500", -> { [500, {}, ["failed"]] }], ["an_exception", -> { raise IOError, "away" }]
  ].each do |name, failure|
    define_method("test_readers_of_a_stale_response_are_one_request_that_#{name}_answers") do
      application = SlowApplication.new(64) { failure.call }
      world = Castellan::CachedApplication.new
      store = Castellan::Store::MemoryStore.new
      stale = { "cache-control" => "max-age=1, stale-if-error=60" }
      old = Castellan::HTTPCache.new(->(_env) { [200, stale.dup, ["old"]] }, store: store, clock: world)
      answers = read_by_64(application, store: store, clock: world) do |number, host|
        next {} if number.positive?

        old.call(Rack::MockRequest.env_for("http://#{host}/", "HTTP_HOST" => host))
        world.later(5)
        {}
      end
      assert_equal [%w[200 old]], answers.map { |answer| [answer.code, answer.body] }.uniq
      assert_operator application.count, :<, 8 # a reader that the server starts after the failure asks again
    end
  end

  def test_readers_of_a_stale_response_are_one_validation
    application = SlowApplication.new(64) { |env, _| env["HTTP_IF_NONE_MATCH"] ? [304, FRESH.dup, []] : [200, FRESH.dup, ["new"]] }
    clock = Castellan::CachedApplication.new
    store = Castellan::Store::MemoryStore.new
    stale = { "cache-control" => "max-age=1", "etag" => '"a"' }
    old = Castellan::HTTPCache.new(->(_env) { [200, stale.dup, ["old"]] }, store: store, clock: clock)
    answers = read_by_64(application, store: store, clock: clock) do |_, host|
      old.call(Rack::MockRequest.env_for("http://#{host}/", "HTTP_HOST" => host)) && clock.later(5) unless @old
      @old = true
      {}
    end
    assert_equal [%w[200 old]], answers.map { |answer| [answer.code, answer.body] }.uniq
    assert_equal 1, application.count
  end

  def test_a_request_that_waited_too_long_is_forwarded
    gate = Queue.new
    world = Castellan::CachedApplication.new(wait: 0.01)
    world.answer do |env|
      gate.pop if env["HTTP_SLOW"]
      [200, FRESH.dup, ["x"]]
    end
    slow = Thread.new { world.get("/", { "Slow" => "1" }) }
    Thread.pass until world.requests.size == 1
    assert_equal "x", world.get.body
    gate << :go
    assert_equal "x", slow.value.body
  end

  def test_readers_after_a_response_that_is_not_stored_do_not_wait_for_each_other
    together = Queue.new
    world = Castellan::CachedApplication.new { [200, {}, ["x"]] }
    world.get
    world.answer do
      together << :here
      Thread.pass until together.size == 2 # would never end if one waited for the other
      [200, {}, ["x"]]
    end
    assert_equal %w[x x], Array.new(2) { Thread.new { world.get.body } }.map(&:value)
  end

  def test_readers_still_wait_after_a_response_to_credentials_that_is_not_stored
    gate = Queue.new
    world = Castellan::CachedApplication.new do |env|
      gate.pop unless env["HTTP_AUTHORIZATION"]
      [200, FRESH.dup, ["x"]]
    end
    world.get("/", { "Authorization" => "Basic x" })
    readers = Array.new(2) { Thread.new { world.get.body } }
    Thread.pass until readers.all? { |reader| reader.status == "sleep" }
    2.times { gate << :go }
    assert_equal [%w[x x], 2], [readers.map(&:value), world.requests.size]
  end

  def test_readers_still_wait_after_a_response_that_an_invalidation_has_overtaken
    gate = Queue.new
    gate << :go
    world = Castellan::CachedApplication.new do |env|
      next [200, {}, []] if env["REQUEST_METHOD"] == "POST"

      gate.pop
      world.post if world.requests.size == 1
      [200, FRESH.dup, ["x"]]
    end
    world.get
    readers = Array.new(2) { Thread.new { world.get.body } }
    Thread.pass until readers.all? { |reader| reader.status == "sleep" }
    2.times { gate << :go }
    assert_equal [%w[x x], 3], [readers.map(&:value), world.requests.size]
  end

  # A body of each kind: whether it is closed, and what is stored.
  def test_a_streamed_body_is_copied_while_it_is_sent_and_closed
    closed = 0
    body = Class.new do
      define_method(:each) { |&block| %w[a b c].each(&block) }
      define_method(:close) { closed += 1 }
    end.new
    world = Castellan::CachedApplication.new { [200, FRESH.dup, body] }
    assert_equal ["abc", 1], [world.get.body, closed]
    assert_equal ["abc", 1, true], [(again = world.get).body, closed, again.hit?]
  end

  def test_a_streamed_body_of_known_length_is_stored_before_its_end_is_sent
    world = Castellan::CachedApplication.new
    seen = nil
    body = Class.new { define_method(:each) { |&block| %w[ab c].each(&block) } }
    application = ->(_env) { [200, FRESH.merge("content-length" => "3"), body.new] }
    cache = Castellan::HTTPCache.new(application, clock: world)
    env = -> { Rack::MockRequest.env_for("http://example.org/") }
    cache.call(env.call)[2].each { |chunk| seen = cache.call(env.call)[1]["cache-status"] if chunk == "c" }
    assert_equal "Castellan; hit; ttl=60", seen
  end

  def test_a_streamed_body_that_ends_early_or_is_too_long_is_not_stored
    [[%w[a b], { "content-length" => "3" }], [["x" * 20], {}]].each do |chunks, fields|
      body = Class.new { define_method(:each) { |&block| chunks.each(&block) } }
      cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.merge(fields), body.new] }, max_body: 10)
      2.times do
        _status, headers, sent = cache.call(Rack::MockRequest.env_for("http://example.org/"))
        assert_equal ["Castellan; fwd=uri-miss", chunks], [headers["cache-status"], sent.enum_for(:each).to_a]
      end
    end
  end

  def test_an_empty_streamed_body_is_stored
    world = Castellan::CachedApplication.new { [301, FRESH.merge("content-length" => "0", "location" => "/b"), [].each] }
    2.times { world.get }
    assert_equal 1, world.requests.size
  end

  # Puma does not read it.
  def test_a_streamed_204_is_stored_over_http
    requests = closed = 0
    body = Class.new do
      define_method(:each) { |&_block| nil }
      define_method(:close) { closed += 1 }
    end
    application = ->(_env) { (requests += 1) && [204, FRESH.dup, body.new] }
    Castellan::TestServers.puma(Castellan::HTTPCache.new(application)) do |url|
      assert_equal(%w[204 204], Array.new(2) { Net::HTTP.get_response(URI(url)).code })
    end
    assert_equal [1, 1], [requests, closed]
  end

  def test_an_array_like_body_that_raises_is_closed
    closed = false
    body = Object.new
    body.define_singleton_method(:to_ary) { raise "broken" }
    body.define_singleton_method(:each) { |&_block| nil }
    body.define_singleton_method(:close) { closed = true }
    assert_raises(RuntimeError) { Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, body] }).call(Rack::MockRequest.env_for("/")) }
    assert closed
  end

  def test_a_streamed_body_that_raises_is_not_stored
    body = Class.new { define_method(:each) { |&block| block.call("a") || raise("cut") } }
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, body.new] })
    2.times do
      _status, headers, sent = cache.call(Rack::MockRequest.env_for("http://example.org/"))
      assert_equal "Castellan; fwd=uri-miss", headers["cache-status"]
      assert_raises(RuntimeError) { sent.each { |_chunk| nil } }
    end
  end

  def test_bodies_that_are_called_and_hijacked_connections_are_passed
    streaming = ->(stream) { stream.close }
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, streaming] })
    assert_same streaming, cache.call(Rack::MockRequest.env_for("http://example.org/"))[2]
    hijack = ->(_io) {}
    cache = Castellan::HTTPCache.new(->(_env) { [200, FRESH.merge("rack.hijack" => hijack), []] })
    headers = cache.call(Rack::MockRequest.env_for("http://example.org/"))[1]
    assert_equal [hijack, "Castellan; fwd=uri-miss"], headers.values_at("rack.hijack", "cache-status")
  end

  def test_early_hints_reach_the_client_of_a_miss
    hints = []
    world = Castellan::CachedApplication.new do |env|
      env["rack.early_hints"].call({ "link" => "</a>" })
      [200, FRESH.dup, ["x"]]
    end
    2.times { world.get("/", {}, env: { "rack.early_hints" => hints.method(:<<) }) }
    assert_equal [{ "link" => "</a>" }], hints
  end

  def test_files_are_stored_and_served_over_http
    Dir.mktmpdir do |dir|
      write_files(dir, { "a.txt" => "content", "large.txt" => "x" * 100 })
      files = Rack::Files.new(dir, FRESH)
      Castellan::TestServers.puma(Castellan::HTTPCache.new(files, max_body: 50)) do |url|
        notes = %w[a.txt a.txt large.txt large.txt].map { |name| Net::HTTP.get_response(URI("#{url}/#{name}"))["cache-status"] }
        assert_equal [nil, "Castellan; hit", nil, nil], notes.map { |note| note[/Castellan; hit/] }
        part = Net::HTTP.get_response(URI("#{url}/a.txt"), { "Range" => "bytes=1-2" })
        assert_equal ["206", "on", "bytes 1-2/7"], [part.code, part.body, part["content-range"]]
        part = Net::HTTP.get_response(URI("#{url}/large.txt"), { "Range" => "bytes=1-2" })
        assert_equal %w[206 xx], [part.code, part.body]
      end
    end
  end

  def test_a_304_over_http_names_no_length
    application = ->(_env) { [200, { "etag" => '"a"', **FRESH }, ["content"]] }
    Castellan::TestServers.puma(Castellan::HTTPCache.new(application)) do |url|
      Net::HTTP.get(URI(url))
      answer = Net::HTTP.get_response(URI(url), { "If-None-Match" => '"a"' })
      assert_equal ["304", nil, nil], [answer.code, answer["content-length"], answer["transfer-encoding"]]
      head = Net::HTTP.start(URI(url).host, URI(url).port) { |http| http.head("/") }
      assert_equal %w[200 7], [head.code, head["content-length"]]
    end
  end

  def test_a_shared_redis_serves_two_processes_and_their_purges
    needs :redis
    store = -> { Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, namespace: "#{name}:", timeout: 5) }
    one, two = Array.new(2) do |number|
      Castellan::CachedApplication.new(store: store.call) { [200, { "vary" => "accept", "xkey" => "a", **FRESH }, [number.to_s]] }
    end
    assert_equal ["0", "0", true], [one.get.body, (again = two.get).body, again.hit?]
    two.later(1)
    two.cache.purge_tags("a")
    refute_predicate one.get, :hit?
    two.cache.purge("http://example.org/")
    refute_predicate one.get, :hit?
  end

  # 64 readers in four processes, over Redis. The first response is sent when all have asked.
  def test_64_cold_readers_in_4_processes_are_one_request
    fields = { **FRESH, "vary" => "accept" }
    answers, count = read_in_processes { |number| [200, fields.dup, ["answer #{number}"]] }
    assert_equal [[[200, "answer 1"]] * 64, 1], [answers.map { |answer| answer.first(2) }, count]
    assert_equal 63, answers.map(&:last).grep(/collapsed|hit/).size
  end

  def test_64_cold_readers_of_two_variants_in_4_processes_are_two_requests
    answers, count = read_in_processes(variants: 2) { |_, env| [200, { **FRESH, "vary" => "reader" }, [env["HTTP_READER"]]] }
    assert_equal [%w[0 1] * 32, 2], [answers.map { |answer| answer[1] }, count]
  end

  def test_readers_of_a_stale_response_in_4_processes_are_one_validation
    stale = [200, { "cache-control" => "max-age=0", "etag" => '"a"' }, ["old"]]
    Castellan::HTTPCache.new(->(_env) { stale }, store: shared_store.call).call(read_env)
    answers, count = read_in_processes do |_, env|
      env["HTTP_IF_NONE_MATCH"] ? [304, FRESH.dup, []] : [200, FRESH.dup, ["new"]]
    end
    assert_equal [[[200, "old"]] * 64, 1], [answers.map { |answer| answer.first(2) }, count]
  end

  # All but the first are in the application at the same time: they do not wait for each other.
  [
    ["private", ->(number, _) { [200, { "cache-control" => "private, max-age=60" }, ["answer #{number}"]] }],
    ["with_a_cookie",
     ->(number, _) { [200, { "set-cookie" => "a=#{number}", **FRESH }, ["answer #{number}"]] }],
    ["varying", lambda { |number, env|
      fields = { "vary" => "reader", "cache-control" => "max-age=60, private=\"vary\"" }
      [200, fields, ["answer #{number}", " for #{env["HTTP_READER"]}"]]
    }]
  ].each do |name, answer|
    define_method("test_readers_of_responses_that_are_#{name}_in_4_processes_share_nothing") do
      answers, count = read_in_processes(together: name != "varying", &answer)
      assert_equal [64, 64], [count, answers.map { |each| each[1] }.uniq.size]
      readers = answers.map { |each| each[1][/ for (\d+)/, 1].to_i }
      assert_equal (0...64).to_a, readers if name == "varying"
    end
  end

  def test_a_failure_in_another_process_is_not_shared
    answers, count = read_in_processes do |number|
      number == 1 ? [500, {}, ["failed"]] : [200, FRESH.dup, ["fine"]]
    end
    assert_equal({ 500 => 1, 200 => 63 }, answers.map(&:first).tally)
    assert_operator count, :<, 64
  end

  def test_a_lease_that_nobody_releases_ends
    store = shared_store.call
    Process.wait(fork do
      Castellan::HTTPCache.new(->(_env) { exit!(0) }, store: store, wait: 0.3).call(read_env)
    end)
    started = Castellan::Clock.monotonic_ns
    application = ->(_env) { [200, FRESH.dup, ["x"]] }
    cache = Castellan::HTTPCache.new(application, store: shared_store.call, wait: 0.3)
    assert_equal 200, cache.call(read_env).first
    assert_operator Castellan::Clock.monotonic_ns - started, :<, 2_000_000_000
  end

  # The store failed when the lease was released.
  def test_a_response_that_is_stored_is_not_waited_for
    store = shared_store.call
    asked = Queue.new
    noting = Class.new(SimpleDelegator) do
      define_method(:write_multi) { |entries, **options| super(entries, **options).tap { asked << true if options[:if_absent] } }
    end
    cache = Castellan::HTTPCache.new(->(_env) { flunk }, store: noting.new(store), wait: 30)
    Castellan::HTTPCache::Storage.new(store).leases(30).hold(Castellan::HTTPCache::ClientRequest.new(read_env).group) do
      reader = Thread.new { cache.call(read_env) }
      asked.pop
      Castellan::HTTPCache.new(->(_env) { [200, FRESH.dup, ["first"]] }, store: store, wait: 0).call(read_env)
      assert reader.join(10), "waits for the lease"
      assert_equal ["first"], reader.value.last
    end
  end

  def test_an_interrupt_right_after_the_lease_was_taken_releases_it
    store = Castellan::Store::FailSafe.for(shared_store.call, log: nil)
    group = Castellan::HTTPCache::ClientRequest.new(read_env).group
    interrupted = Class.new(SimpleDelegator) { def acquire(...) = super && throw(:timeout) }.new(store)
    catch(:timeout) { Castellan::HTTPCache::Leases.new(interrupted, seconds: 8).hold(group) { flunk } }
    assert_equal :first, Castellan::HTTPCache::Leases.new(store, seconds: 8).hold(group) { |state| state }
  end

  def test_one_of_several_processes_validates_in_the_background
    store = shared_store
    gate = Queue.new
    number = 0
    one, two = Array.new(2) do
      Castellan::CachedApplication.new(store: store.call) do
        gate.pop if (number += 1) > 1
        [200, { "cache-control" => "max-age=10, stale-while-revalidate=100" }, [number.to_s]]
      end
    end
    one.get
    [one, two].each { |world| world.later(20) }
    assert_equal "1", one.get.body
    Thread.pass until number == 2
    assert_equal "1", two.get.body
    two.cache.refreshes.wait
    gate << :go
    one.cache.refreshes.wait
    assert_equal ["2", "2", 2], [one.get.body, two.get.body, number]
  end

  private

  PROCESSES, THREADS = 4, 16
  private_constant :PROCESSES, :THREADS

  # @return [#call] makes stores of the same keys
  def shared_store
    needs :redis
    url = Castellan::TestServers.redis_url # a child process would start a server of its own
    -> { Castellan::Store::RedisStore.new(url: url, size: THREADS, timeout: 10, namespace: "#{name}:") }
  end

  def read_env(number = 0)
    fields = { "HTTP_HOST" => "example.org", "HTTP_READER" => number.to_s }
    Rack::MockRequest.env_for("http://example.org/", fields)
  end

  # @param together [Boolean] whether the other responses wait until all are requested
  # @yieldparam number [Integer] of the request to the application
  # @return [Array(Array, Integer)] status, body and Cache-Status of each reader; requests to the application
  def read_in_processes(together: false, variants: 64, &answer)
    store = shared_store
    pipes = Array.new(PROCESSES) { IO.pipe(binmode: true) } # Rails sets Encoding.default_internal
    pids = pipes.each_with_index.map do |(_, writer), process|
      fork { read_in_process(writer, process, store, together, variants, answer) }
    end
    pipes.each { |pipe| pipe.last.close }
    answers = pipes.flat_map do |reader, _|
      answer = Marshal.load(reader.read) # rubocop:disable Security/MarshalLoad -- of a child process
      answer.is_a?(String) ? flunk(answer) : answer
    end
    pids.each { |pid| Process.wait(pid) }
    [answers, store.call.increment("count") - 1]
  end

  def read_in_process(writer, process, stores, together, variants, answer)
    store = stores.call
    cache = Castellan::HTTPCache.new(lambda do |env|
      number = store.increment("count")
      wait_until(store, "asked", 64) if number == 1
      wait_until(store, "count", 64) if number > 1 && together
      answer.call(number, env)
    end, store: store, wait: 30)
    threads = Array.new(THREADS) do |thread|
      Thread.new do
        store.increment("asked")
        status, headers, body = cache.call(read_env(((process * THREADS) + thread) % variants))
        [status, body.join, headers["cache-status"]]
      end
    end
    writer.write(Marshal.dump(threads.map(&:value)))
  rescue Exception => error # rubocop:disable Lint/RescueException -- the parent reports it
    writer.write(Marshal.dump(error.full_message(highlight: false)))
  ensure
    writer.close
    exit!(0)
  end

  def wait_until(store, key, number)
    deadline = Castellan::TestServers.now + 20
    sleep 0.01 until store.read_multi([key])[key].to_i >= number || Castellan::TestServers.now > deadline
  end

  # @return [Array<Net::HTTPResponse>] of 64 threads, in their order
  def read_by_64(application, **options)
    cache = Castellan::HTTPCache.new(application, **options)
    Castellan::TestServers.puma(application.outside(cache), threads: 64) do |url|
      uri = URI("#{url}/")
      fields = (0...64).map { |number| block_given? ? yield(number, "#{uri.host}:#{uri.port}") : { "Reader" => number.to_s } }
      fields.map { |some| Thread.new { Net::HTTP.get_response(uri, some) } }.map(&:value)
    end
  end
end
