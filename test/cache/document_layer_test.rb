# frozen_string_literal: true

require "test_helper"
require_relative "broken_store"
require "support/turns"

# rubocop:disable-next Style/RedundantFetchBlock -- not Hash#fetch: the block computes what is kept
class CacheDocumentLayerTest < Minitest::Test
  # A store that appears to be shared with other processes.
  class SharedStore
    def initialize = @memory = Castellan::Store::MemoryStore.new
    def method_missing(...) = @memory.public_send(...)
    def respond_to_missing?(...) = @memory.respond_to?(...)
  end

  # A shared store that writes one lease and then does not answer.
  class UnansweredStore < SharedStore
    attr_reader :failure

    def initialize(failure)
      super()
      @failure = failure
    end

    def write_multi(entries, **options)
      written = @memory.write_multi(entries, **options)
      failure, @failure = @failure, nil
      failure ? failure.call : written
    end
  end

  def test_a_miss_computes_once_and_a_hit_does_not
    calls = 0
    layer = documents
    assert_equal "bytes", layer.fetch("k") { (calls += 1) && "bytes" }
    assert_equal "bytes", layer.fetch("k") { flunk "computed again" }
    assert_equal "bytes", layer.entry("k").bytes
    assert_nil layer.entry("other")
    assert_equal 1, calls
  end

  def test_concurrent_threads_share_one_computation
    calls = Queue.new
    gate = Queue.new
    layer = documents
    threads = Array.new(8) { Thread.new { layer.fetch("k") { (calls << 1) && gate.pop } } }
    Thread.pass until threads.count { |thread| thread.status == "sleep" } == 8
    gate << "bytes"
    assert_equal ["bytes"], threads.map(&:value).uniq
    assert_equal 1, calls.size
  end

  def test_other_keys_do_not_wait
    gate = Queue.new
    layer = documents
    slow = Thread.new { layer.fetch("slow") { gate.pop } }
    Thread.pass until slow.status == "sleep"
    assert_equal "fast", layer.fetch("fast") { "fast" }
    gate << "slow"
    assert_equal "slow", slow.value
  end

  def test_an_error_raises_in_its_thread_and_the_others_compute
    gate = Queue.new
    layer = documents
    first = Thread.new { layer.fetch("k") { gate.pop && raise(IOError, "mine") } }
    first.report_on_exception = false
    Thread.pass until first.status == "sleep"
    second = Thread.new { layer.fetch("k") { "bytes" } }
    Thread.pass until second.status == "sleep"
    gate << true
    assert_equal "mine", assert_raises(IOError) { first.value }.message
    assert_equal "bytes", second.value
  end

  def test_a_killed_thread_leaves_no_thread_waiting
    layer = documents
    first = Thread.new { layer.fetch("k") { Queue.new.pop } }
    Thread.pass until first.status == "sleep"
    second = Thread.new { layer.fetch("k") { "bytes" } }
    Thread.pass until second.status == "sleep"
    first.kill
    assert_equal "bytes", second.value
  end

  def test_a_forked_process_does_not_wait_for_threads_of_its_parent
    layer = documents(lease_ttl: 3_600)
    gate = Queue.new
    slow = Thread.new { layer.fetch("k") { gate.pop } }
    Thread.pass until slow.status == "sleep"
    reader, writer = IO.pipe
    pid = fork do
      writer.write(layer.fetch("k") { "the child's" })
    ensure
      exit!(0)
    end
    writer.close
    assert_equal "the child's", reader.wait_readable(30) && reader.read
    gate << "the parent's"
    assert_equal "the parent's", slow.value
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_a_thread_that_waits_too_long_computes
    gate = Queue.new
    layer = documents(lease_ttl: 0.05)
    first = Thread.new { layer.fetch("k") { gate.pop } }
    Thread.pass until first.status == "sleep"
    assert_equal "mine", layer.fetch("k") { "mine" }
    gate << "first"
    assert_equal "first", first.value
  end

  def test_a_thread_does_not_wait_for_its_own_computation
    layer = documents
    assert_equal "inner+", layer.fetch("k") { "#{layer.fetch('k') { 'inner' }}+" }
  end

  def test_a_thread_does_not_wait_for_its_own_lease
    layer = documents(store: SharedStore.new, lease_ttl: 3600)
    Timeout.timeout(60) { assert_equal "inner+", layer.fetch("k") { "#{layer.fetch('k') { 'inner' }}+" } }
  end

  def test_nil_is_not_cached
    layer = documents
    assert_nil layer.fetch("k") { nil }
    assert_equal "bytes", layer.fetch("k") { "bytes" }
  end

  def test_a_broken_store_is_a_miss_and_is_logged_once_per_outage
    store = BrokenStore.new
    lines = []
    layer = Castellan::Cache::DocumentLayer.new(store: store, log: ->(line) { lines << line })
    now = 0
    Castellan::Clock.stub(:monotonic_ns, -> { now }) do
      store.broken = true
      3.times { |i| assert_equal "bytes#{i}", layer.fetch("k") { "bytes#{i}" } }
      assert_equal ["castellan: the cache is skipped, because its store fails: connection refused"], lines
      store.broken = false
      2.times { assert_equal "kept", layer.fetch("k") { "kept" } }
      now += 10_000_000_000
      store.broken = true
      layer.fetch("k") { "again" }
      assert_equal 2, lines.size
    end
  end

  def test_a_store_that_fails_slowly_is_skipped_for_ten_times_as_long
    asked = 0
    now = 0
    late = -> { (asked += 1) && (now += 500) && raise(Castellan::StoreError, "timeout") }
    store = Class.new(BrokenStore) { define_method(:fail_if_broken, &late) }.new
    layer = Castellan::Cache::DocumentLayer.new(store: store, log: ->(_line) {})
    look = ->(time) { (now = time) && layer.entry("a") || asked }
    Castellan::Clock.stub(:monotonic_ns, -> { now }) do
      assert_equal [1, 1, 1, 2], [0, 500, 5_499, 5_500].map(&look)
    end
  end

  def test_the_layer_is_skipped_when_switched_off
    store = BrokenStore.new
    layer = Castellan::Cache::DocumentLayer.new(store: store)
    with_env("CASTELLAN" => "off") do
      assert_equal %w[1 2], [layer.fetch("k") { "1" }, layer.fetch("k") { "2" }]
      assert_nil layer.entry("k")
    end
    assert_equal [0, 0], [store.reads, store.writes]
  end

  def test_the_bytes_of_another_process_are_used
    store = SharedStore.new
    one = documents(store: store)
    other = documents(store: store)
    gate = Queue.new
    first = Thread.new { one.fetch("k") { gate.pop } }
    Thread.pass until first.status == "sleep"
    second = Thread.new { other.fetch("k") { flunk "computed although another process does" } }
    Thread.pass until second.status == "sleep"
    gate << "bytes"
    assert_equal %w[bytes bytes], [first.value, second.value]
    assert_empty store.read_multi(["k:lease"]), "the lease is given back"
  end

  def test_bytes_that_another_process_wrote_after_the_miss_are_notified_as_waited_for
    seen = []
    subscriber = ActiveSupport::Notifications.subscribe("cache.castellan") { |event| seen << event.payload.values_at(:outcome, :bytes) }
    theirs = Castellan::Cache::Entry.new("k", "theirs", made_ms: Castellan::Clock.wall_ms, cost_ms: 1).dump
    [2, 3].each do |number| # the read before the lease, and that after it
      store = SharedStore.new
      reads = 0
      store.define_singleton_method(:read_multi) do |keys|
        write_multi({ "k" => theirs }, ttl: 60) if (reads += 1) == number
        super(keys)
      end
      assert_equal "theirs", documents(store: store).fetch("k") { flunk "computed although another process did" }
    end
    assert_equal [[:miss, nil], [:wait, 6]] * 2, seen
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end

  def test_a_waiting_process_computes_when_the_lease_is_released
    store = SharedStore.new
    store.write_multi({ "k:lease" => "another" }, ttl: 60)
    waiting = Thread.new { documents(store: store).fetch("k") { "mine" } }
    Thread.pass until waiting.status == "sleep"
    store.delete_multi(["k:lease"])
    assert_equal "mine", waiting.value
  end

  # As after the death of the process that computed.
  def test_one_of_those_that_waited_computes_when_the_lease_ends
    store = SharedStore.new
    store.write_multi({ "k:lease" => "dead" }, ttl: 60)
    polls, calls, gate = Array.new(3) { Queue.new }
    store.define_singleton_method(:read_multi) { |keys| super(keys).tap { polls << 1 if keys.include?("k:lease") } }
    threads = Array.new(3) { Thread.new { documents(store: store).fetch("k") { (calls << 1) && gate.pop } } }
    Thread.pass until polls.size >= 3
    store.delete_multi(["k:lease"])
    Thread.pass until calls.size.positive?
    polls.clear
    Thread.pass until polls.size >= 4 || calls.size == 3
    3.times { gate << "bytes" }
    assert_equal [["bytes"] * 3, 1], [threads.map(&:value), calls.size]
    assert_empty store.read_multi(["k:lease"])
  end

  def test_a_lease_that_is_never_released_expires
    store = SharedStore.new
    store.write_multi({ "k:lease" => "another" }, ttl: 60)
    assert_equal "mine", documents(store: store, lease_ttl: 0.05).fetch("k") { "mine" }
    assert_equal({ "k:lease" => "another" }, store.read_multi(["k:lease"]))
  end

  # As under Falcon, where all requests share one thread.
  def test_fibers_of_a_scheduler_compute_once
    layer = documents
    bytes = Thread::Queue.new
    computed = 0
    read = -> { layer.fetch("k") { (computed += 1) && bytes.pop } }
    assert_equal %w[bytes bytes bytes], Turns.run(read, read, -> { bytes << "bytes" && read.call })
    assert_equal 1, computed
  end

  def test_an_interrupt_anywhere_leaves_no_computation_behind
    file = Castellan::Cache::SingleFlight.instance_method(:run).source_location.first
    lines = 0
    left = (1..40).map do |line|
      flights = Castellan::Cache::SingleFlight.new
      catch(:interrupted) { throwing_at(file, line) { flights.run("k") { "bytes" } } && lines += 1 }
      flights.running?("k")
    end
    assert_operator lines, :>, 20, "the last of them are after the end"
    assert_equal [false], left.uniq
  end

  # A process that waits for a lease would wait for ten seconds.
  def test_a_lease_whose_answer_does_not_arrive_is_released
    [-> { throw :interrupted }, -> { raise Castellan::StoreError, "no answer" }].each do |failure|
      store = UnansweredStore.new(failure)
      catch(:interrupted) { documents(store: store, log: ->(_line) {}).fetch("k") { "bytes" } }
      assert_nil store.failure
      assert_empty store.read_multi(%w[k:lease])
    end
  end

  def test_an_invalid_lifetime_raises_at_once
    assert_raises(ArgumentError) { documents(lease_ttl: 0) }
    [0, -1, "60", :x, Float::INFINITY, Float::NAN].each do |wrong|
      error = assert_raises(ArgumentError) { Castellan::Cache::Freshness.new(expires_in: wrong) }
      assert_equal "expires_in: must be seconds above 0 or nil, got #{wrong.inspect}", error.message
    end
  end

  # The thread lives on, as one of Puma's does, so others would wait for it.
  def test_an_interrupt_at_the_end_of_a_computation_is_raised_after_it
    flight = Castellan::Cache::SingleFlight.new(timeout: 30)
    mutex = flight.instance_variable_get(:@mutex)
    boom = Class.new(StandardError)
    computing, go_on, done = Array.new(3) { Queue.new }
    thread = Thread.new do
      flight.run("k") { computing << true && go_on.pop }
    rescue boom
      done.pop
    end
    computing.pop
    mutex.synchronize do
      go_on << "bytes"
      Thread.pass until go_on.empty? && go_on.num_waiting.zero? && thread.status == "sleep" # for the mutex
      thread.raise(boom)
      Thread.pass until thread.pending_interrupt? || done.num_waiting == 1
    end
    Thread.pass until done.num_waiting == 1
    refute flight.running?("k")
  ensure
    done << true
    thread.join
  end

  def test_many_threads_and_keys_always_get_their_own_bytes
    layer = documents(store: Castellan::Store::MemoryStore.new(max_bytesize: 20_000))
    wrong = Array.new(8) do |thread|
      Thread.new do
        rng = Random.new(thread)
        Array.new(300) { (key = "k#{rng.rand(40)}") && (layer.fetch(key) { "#{key} bytes" } == "#{key} bytes") }.count(false)
      end
    end.sum(&:value)
    assert_equal 0, wrong
  end

  private

  # Leaves by throw, as Timeout does, before the given line that runs; not in the cleanup.
  def throwing_at(file, number)
    seen = 0
    cleanup = File.readlines(file).index { |line| line.include?("land(key") } + 1
    trace = TracePoint.new(:line) do |point|
      next if point.path != file || point.lineno == cleanup || %i[land running? synchronize].include?(point.method_id)

      throw(:interrupted) if (seen += 1) == number
    end
    trace.enable { yield }
  end

  def documents(store: Castellan::Store::MemoryStore.new, **options)
    Castellan::Cache::DocumentLayer.new(store: store, **options)
  end
end
