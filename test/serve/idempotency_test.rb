# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "delegate"
require "rack"
require "redis-client"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"
require "cache/broken_store"

# Idempotency-Key over HTTP, on real databases and stores.
module IdempotencyContract
  JSON_API = "application/vnd.api+json"
  TAG = { type: "tags", attributes: { name: "once" } }.freeze

  def setup
    Journal.active_record(:sqlite).fill
    @store = build_store
    @app = build(@store)
  end

  def test_a_repeated_request_is_performed_once
    first = post(TAG)
    again = post(TAG)
    assert_equal [201, 201], [first.status, again.status]
    assert_equal first.body, again.body
    assert_equal first["location"], again["location"]
    assert_equal [nil, "true"], [first, again].map { |response| response["idempotent-replayed"] }
    assert_equal 1, count
    assert_equal 201, post(TAG, key: '"other"').status
    assert_equal 2, count
  end

  def test_a_key_may_be_sent_without_quotes
    assert_equal "true", [post(TAG, key: "9a-b_c"), post(TAG, key: '"9a-b_c"')].last["idempotent-replayed"]
  end

  def test_another_request_with_the_same_key_is_422
    post(TAG)
    [post({ type: "tags", attributes: { name: "twice" } }), post(TAG, path: "/tags?fields[tags]=name"),
     post({ type: "comments", attributes: {} }, path: "/comments")].each do |response|
      assert_refused 422, response
    end
    assert_equal 1, count
  end

  def test_each_viewer_has_keys_of_its_own
    assert_equal [201, 201], [post(TAG, viewer: "1").status, post(TAG, viewer: "2").status]
    assert_equal 2, count
  end

  def test_what_failed_can_be_sent_again
    2.times { assert_equal 422, post({ type: "tags", attributes: { name: nil } }).status }
    assert_equal 409, post({ type: "writers", attributes: { name: "x" } }).status
    assert_equal 201, post(TAG).status
  end

  def test_an_error_of_the_application_releases_the_key
    @app = build(@store) { |models| resource models::OverridingPostResource, at: "tags" }
    Castellan::Write::Transaction.stub(:run, ->(*) { raise "broken" }) do
      assert_raises(RuntimeError) { post({ type: "posts", attributes: { title: "Broken" } }) }
    end
    assert_equal 201, post({ type: "posts", attributes: { title: "Broken" } }).status
  end

  def test_operations_and_relationships_are_performed_once
    operations = JSON.generate("atomic:operations" => [{ op: "add", data: TAG }])
    headers = { "CONTENT_TYPE" => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' }
    responses = Array.new(2) { send_bytes("/operations", operations, **headers) }
    assert_equal [[200, 200], 1], [responses.map(&:status), count]
    link = JSON.generate(data: [{ type: "tags", id: "3" }])
    responses = Array.new(2) { send_bytes("/posts/1/relationships/tags", link, key: '"link"') }
    assert_equal [204, 204, "true"], [*responses.map(&:status), responses.last["idempotent-replayed"]]
  end

  def test_other_methods_ignore_the_key
    response = send_bytes("/tags/1", JSON.generate(data: { type: "tags", id: "1", attributes: { name: "new" } }), method: "PATCH")
    assert_equal [200, nil], [response.status, response["idempotent-replayed"]]
  end

  def test_keys_that_are_none_are_400
    ["", '""', "a b", "a,b", "x" * 256, "\"x", "\xFF".b, "\"a\\\"b\""].each { |key| assert_refused 400, post(TAG, key: key) }
    assert_equal [413, 0], [send_bytes("/tags", "x" * 1_100_000).status, count]
  end

  def test_of_requests_at_once_one_is_performed
    gate = Queue.new
    slow = Class.new(Journal.active_record(:sqlite).models::TagResource) do
      define_method(:create) { |attributes, viewer| gate.pop && super(attributes, viewer) }
    end
    @app = build(@store) { resource slow, at: "tags" }
    running = Thread.new { post(TAG) }
    Thread.pass until gate.num_waiting == 1
    waiting = post(TAG)
    assert_refused 409, waiting
    assert_equal "1", waiting["retry-after"]
    assert_refused 422, post({ type: "tags", attributes: { name: "x" } })
    gate << true
    assert_equal [201, 201, 1], [running.value.status, post(TAG).status, count]
  end

  private

  def build(store, **options, &block)
    models = Journal.active_record(:sqlite).models
    Rack::Lint.new(Castellan.app do
      authenticate { |env| env.fetch("HTTP_AUTHORIZATION", "0").to_i }
      idempotency(store: store, **options)
      block ? instance_exec(models, &block) : %w[Post Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") }
      operations
    end)
  end

  def post(data, path: "/tags", key: '"one"', viewer: "0")
    send_bytes(path, JSON.generate(data: data), key: key, "HTTP_AUTHORIZATION" => viewer)
  end

  def send_bytes(path, bytes, key: '"one"', method: "POST", **headers)
    env = Rack::MockRequest.env_for(path, method: method, input: bytes)
    env = env.merge({ "CONTENT_TYPE" => JSON_API, "HTTP_IDEMPOTENCY_KEY" => key }.compact, headers.transform_keys(&:to_s))
    Rack::MockResponse[*@app.call(env)]
  end

  def assert_refused(status, response)
    error = JSON.parse(response.body)["errors"].first
    assert_equal [status, { "header" => "Idempotency-Key" }], [response.status, error["source"]], response.body
  end

  def count = Journal.active_record(:sqlite).rows("SELECT id FROM tags WHERE id > 3").size
end

class IdempotencyInMemoryTest < Minitest::Test
  include IdempotencyContract

  def build_store = Castellan::Store::MemoryStore.new

  def test_a_response_is_kept_for_its_ttl
    post(TAG)
    Castellan::Clock.stub(:monotonic_ns, Castellan::Clock.monotonic_ns + (86_401 * 1_000_000_000)) { assert_equal 201, post(TAG).status }
    assert_equal 2, count
  end

  def test_a_response_that_is_too_long_to_keep_is_not_performed_again
    @app = build(Castellan::Store::MemoryStore.new(max_bytesize: 5_000))
    long = { type: "tags", attributes: { name: "x" * 2_000 } }
    assert_equal 201, post(long).status
    assert_refused 409, post(long)
    assert_equal 1, count
  end

  def test_a_key_may_be_required
    @app = build(@store, required: true)
    assert_refused 400, post(TAG, key: nil)
    @app = build(@store)
    assert_equal 201, post(TAG, key: nil).status
  end

  def test_what_another_program_wrote_to_the_store_is_a_409
    post(TAG)
    kept = BrokenStore.new
    @app = build(kept)
    ["R", "R#{"x" * 50}", "", "L"].each do |bytes|
      kept.stub(:write_multi, []) {
        kept.stub(:read_multi, ->(keys) {
          { keys.first => bytes }
        }) { assert_includes 409..422, post(TAG).status }
      }
    end
  end

  def test_a_response_that_the_store_damaged_is_a_409
    change = nil
    damaging = Class.new(SimpleDelegator) { define_method(:read_multi) { |keys| super(keys).transform_values { |kept| change[kept.dup] } } }
    @app = build(damaging.new(@store))
    assert_equal 201, post(TAG).status
    [->(kept) { kept[0..-2] }, ->(kept) { kept[0, 37] }, ->(kept) { "#{kept}x" }, ->(kept) { kept.tap { kept.setbyte(-5, 33) } },
     ->(kept) { kept.tap { kept.setbyte(40, 33) } }].each { |damage| (change = damage) && assert_refused(409, post(TAG)) }
    change = ->(kept) { kept }
    assert_equal [201, 1], [post(TAG).status, count]
  end

  def test_the_response_of_another_key_is_a_409
    keys = ['"one"', '"two"']
    keys.each { |key| assert_equal 201, post(TAG, key: key).status }
    first = nil
    mixing = Class.new(SimpleDelegator) { define_method(:read_multi) { |names| { names.first => first ||= super(names).values.first } } }
    @app = build(mixing.new(@store))
    assert_equal([201, 409], keys.map { |key| post(TAG, key: key).status })
  end

  # redis-client and dalli write again after their connection broke.
  def test_a_key_that_the_client_wrote_twice_is_taken
    @app = build(Class.new(SimpleDelegator) { def write_multi(*, **) = Array.new(2) { super }.last }.new(@store))
    assert_equal [201, 201, 1], [post(TAG).status, post(TAG).status, count]
  end

  def test_a_store_that_fails_is_503_and_writes_nothing
    @app = build(BrokenStore.new.tap { |store| store.broken = true })
    response = post(TAG)
    assert_equal [503, "1", 0], [response.status, response["retry-after"], count]
    assert_equal 201, post(TAG, key: nil).status
  end

  def test_a_store_that_fails_after_the_write_does_not_hide_it
    failing = Class.new(SimpleDelegator) do
      def write_multi(entries, if_absent: false, **options) = if_absent ? super : raise(Castellan::StoreError, "gone")
    end
    @app = build(failing.new(@store))
    _, err = capture_io { assert_equal 201, post(TAG).status }
    assert_includes err, "was not kept: gone"
    assert_refused 409, post(TAG)
  end

  def test_a_store_that_fails_beside_another_error_does_not_hide_that
    failing = Class.new(SimpleDelegator) do
      def write_multi(entries, if_absent: false, **options) = if_absent ? super : raise(Castellan::StoreError, "gone")
      def compare_and_delete(*) = raise(Castellan::StoreError, "gone")
    end
    @app = build(failing.new(@store))
    assert_equal 422, post({ type: "tags", attributes: { name: nil } }).status
    written = RuntimeError.new("after the commit").extend(Castellan::Write::Transaction::Committed)
    _, err = capture_io do
      Castellan::Write::Transaction.stub(:run, ->(*) { raise written }) do
        assert_same written, assert_raises(RuntimeError) { post(TAG, key: '"two"') }
      end
    end
    assert_includes err, "was not kept: gone"
  end

  # A store deletes the value before one that is too large for it.
  def test_a_repeated_request_is_never_performed_while_a_large_response_is_refused
    during = []
    repeat = nil
    repeating = Class.new(SimpleDelegator) do
      define_method(:write_multi) do |entries, **options|
        written = super(entries, **options)
        (repeat, again = nil, repeat) && again&.call if written.empty?
        written
      end
    end
    @app = build(repeating.new(Castellan::Store::MemoryStore.new(max_bytesize: 160_000)))
    long = { type: "tags", attributes: { name: "x" * 30_000 } }
    repeat = -> { during << post(long).status }
    assert_equal [201, 409], [post(long).status, post(long).status]
    assert_equal [409], during
    assert_equal 1, count
  end

  def test_a_store_that_fails_when_the_response_is_read_is_503
    post(TAG)
    @app = build(Class.new(SimpleDelegator) { def read_multi(*) = raise(Castellan::StoreError, "gone") }.new(@store))
    assert_equal [503, 1], [post(TAG).status, count]
  end

  # The client sends the request again, as the 503 says, and must not get a 409 for a minute.
  def test_a_key_whose_answer_does_not_arrive_can_be_sent_again
    [-> { throw :interrupted }, -> { raise Castellan::StoreError, "no answer" }].each do |failure|
      unanswered = Class.new(SimpleDelegator) do
        define_method(:write_multi) { |entries, **options| super(entries, **options).tap { (once, failure = failure, nil) && once&.call } }
      end
      @app = build(unanswered.new(@store))
      catch(:interrupted) { assert_equal 503, post(TAG).status }
      assert_equal [0, 201], [count, post(TAG).status]
      setup
    end
  end

  def test_a_block_distinguishes_viewers
    models = Journal.active_record(:sqlite).models
    by_claims = lambda do |&block|
      Castellan.app do
        authenticate { { "sub" => "7" } }
        idempotency(store: Castellan::Store::MemoryStore.new, &block)
        resource models::TagResource
      end
    end
    @app = by_claims.call { |viewer| viewer["sub"] }
    assert_equal "true", Array.new(2) { post(TAG) }.last["idempotent-replayed"]
    user, machine = Array.new(2) { Struct.new(:id) }
    self.class.const_set(:User, user)
    self.class.const_set(:Machine, machine)
    viewers = [user.new(7), machine.new(7), "seven", :seven]
    store = Castellan::Store::MemoryStore.new
    @app = Castellan.app do
      authenticate { viewers.first }
      idempotency store: store
      resource models::TagResource
    end
    assert_equal([nil] * 4, Array.new(4) { post(TAG)["idempotent-replayed"].tap { viewers.rotate! } })
    assert_equal(["true"] * 4, Array.new(4) { post(TAG)["idempotent-replayed"].tap { viewers.rotate! } })
    @app = by_claims.call
    assert_includes assert_raises(Castellan::ConfigurationError) { post(TAG) }.message, "another value for each viewer"
  end

  def test_wrong_options_fail_when_the_app_is_built
    models = Journal.active_record(:sqlite).models
    { { store: @store, ttl: 5 } => "ttl:", { store: Castellan::Store::NullStore.new } => "leases",
      { store: nil } => "leases" }.each do |options, text|
      error = assert_raises(Castellan::ConfigurationError) { build(options[:store], **options.except(:store)) }
      assert_includes error.message, text
    end
    error = assert_raises(Castellan::ConfigurationError) do
      Castellan.app { idempotency(store: Castellan::Store::MemoryStore.new) || resource(models::TagResource) }
    end
    assert_includes error.message, "needs authenticate"
  end
end

class IdempotencyInRedisTest < Minitest::Test
  include IdempotencyContract

  def setup
    needs :redis
    super
  end

  def build_store
    url = Castellan::TestServers.redis_url
    RedisClient.new(url: url).call("FLUSHDB")
    Castellan::Store::RedisStore.new(url: url, timeout: 10) # on a slow machine, too
  end
end
