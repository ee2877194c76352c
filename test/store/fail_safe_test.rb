# frozen_string_literal: true

require "test_helper"
require_relative "slow_store"

# FailSafe skips a store that failed slowly for a limited time.
class FailSafeTest < Minitest::Test
  SECOND = SlowStore::SECOND

  def setup
    @store = SlowStore.new(takes: SECOND / 4)
    @lines = []
    @safe = Castellan::Store::FailSafe.new(@store, log: ->(line) { @lines << line })
  end

  def test_the_first_failure_skips_the_store_for_ten_times_its_duration
    clocked do
      fail_once
      failed = @store.now
      @store.broken = false
      assert_equal({}, read_at(failed + (SECOND * 10 / 4) - 1))
      assert_equal({ "a" => "A" }, read_at(failed + (SECOND * 10 / 4)))
    end
  end

  def test_a_store_is_skipped_for_five_seconds_at_most
    clocked do
      @store.takes = 30 * SECOND
      fail_once
      failed = @store.now
      @store.broken = false
      assert_equal [{}, {}], [failed, failed + (5 * SECOND) - 1].map { |now| read_at(now) }
      assert_equal({ "a" => "A" }, read_at(failed + (5 * SECOND)))
    end
  end

  def test_one_thread_tries_a_store_again_while_others_skip_it
    clocked do
      fail_once
      @store.broken = false
      @store.now += 5 * SECOND
      others = []
      other = -> { Thread.new { @safe.read_multi(%w[a]) }.value }
      @store.define_singleton_method(:read_multi) do |keys|
        2.times { others << other.call } if others.empty?
        super(keys)
      end
      assert_equal({ "a" => "A" }, @safe.read_multi(%w[a]))
      assert_equal [{}, {}], others
    end
  end

  def test_an_outage_is_logged_once_also_by_simultaneous_requests
    gate = Queue.new
    @store.broken = true
    @store.define_singleton_method(:read_multi) { |keys| gate.pop && super(keys) }
    threads = Array.new(5) { Thread.new { @safe.read_multi(%w[a]) } }
    Thread.pass until gate.num_waiting == 5
    5.times { gate << true }
    assert_equal [{}], threads.map(&:value).uniq
    assert_equal 1, @lines.size
  end

  # A full Redis, for example.
  def test_a_store_that_only_fails_to_write_is_logged_once_and_its_reads_go_on
    @safe.write_multi({ "a" => "A" })
    def @store.write_multi(*, **) = raise(Castellan::StoreError, "OOM")
    clocked do
      20.times do
        assert_empty @safe.write_multi({ "b" => "B" })
        assert_equal({ "a" => "A" }, @safe.read_multi(%w[a]))
        @store.now += SECOND
      end
    end
    assert_equal ["castellan: the cache is skipped, because its store fails: OOM"], @lines
  end

  def test_another_failure_or_the_same_one_after_ten_seconds_is_another_outage
    clocked do
      2.times do
        fail_once
        @store.broken = false
        read_at(@store.now + (9 * SECOND))
      end
      assert_equal 1, @lines.size
      @store.now += SECOND
      fail_once
      assert_equal 2, @lines.size
      @store.broken = false
      read_at(@store.now + (5 * SECOND))
      def @store.read_multi(_keys) = raise(Castellan::StoreError, "connection reset")
      assert_empty @safe.read_multi(%w[a])
      assert_equal 3, @lines.size
    end
  end

  # As of a server of a Redis Cluster that is used without a client for it.
  def test_failures_that_differ_by_a_number_belong_to_the_same_outage
    slot = 11_850
    clocked do
      @store.define_singleton_method(:read_multi) { |_keys| raise(Castellan::StoreError, "MOVED #{slot += 1} 127.0.0.1:7001") }
      5.times do
        read_at(@store.now + SECOND)
        @safe.write_multi({ "a" => "A" })
      end
    end
    assert_equal ["castellan: the cache is skipped, because its store fails: MOVED 11851 127.0.0.1:7001"], @lines
  end

  # The system's messages name the file, which is another one for each key.
  def test_a_full_disk_is_one_outage
    @safe.write_multi({ "a" => "A" })
    files = %w[a b c].each
    @store.define_singleton_method(:write_multi) do |*, **|
      raise(Castellan::StoreError, "No space left on device @ io_write - /cache/#{files.next}")
    end
    clocked do
      3.times do
        assert_equal({ "a" => "A" }, read_at(@store.now + SECOND))
        @safe.write_multi({ "b" => "B" })
      end
    end
    assert_equal ["castellan: the cache is skipped, because its store fails: No space left on device @ io_write - /cache/a"], @lines
  end

  # As of a cluster that lost a server: keys of other servers still work.
  def test_failures_that_alternate_belong_to_the_same_outage
    @safe.write_multi({ "a" => "A" })
    failures = %w[ErrorCollection CannotConnectError].cycle
    @store.define_singleton_method(:write_multi) { |*, **| raise(Castellan::StoreError, failures.next) }
    clocked do
      10.times do
        assert_equal({ "a" => "A" }, read_at(@store.now + SECOND))
        2.times { @safe.write_multi({ "b" => "B" }) }
      end
    end
    assert_equal ["castellan: the cache is skipped, because its store fails: ErrorCollection"], @lines
  end

  # A user of Redis without the right to write has none to run scripts either.
  def test_a_lease_that_cannot_be_written_is_logged_with_the_failure_of_the_write
    @store.define_singleton_method(:write_multi) { |*, **| raise(Castellan::StoreError, "no permission to SET") }
    @store.define_singleton_method(:compare_and_delete) { |*| raise(Castellan::StoreError, "no permission to EVAL") }
    assert_nil @safe.acquire("lease", "me", ttl: 10)
    assert_equal ["castellan: the cache is skipped, because its store fails: no permission to SET"], @lines
  end

  # redis-client and dalli do that when their connection broke before the first answer arrived.
  def test_a_lease_that_the_client_wrote_twice_is_acquired
    write = @store.method(:write_multi)
    @store.define_singleton_method(:write_multi) { |entries, **options| Array.new(2) { write.call(entries, **options) }.last }
    assert_equal true, @safe.acquire("lease", "me", ttl: 10)
    assert_equal false, @safe.acquire("lease", "another", ttl: 10)
  end

  # Redis repeats the arguments of a command that it does not know, which may be compressed bytes.
  def test_a_failure_whose_message_is_not_utf8_is_a_miss
    clocked do
      @store.define_singleton_method(:read_multi) { |_keys| raise(Castellan::StoreError, "unknown command 'SET', with args: '\xFF'") }
      read_at(@store.now + SECOND)
    end
    assert_equal 1, @lines.size
  end

  # Other processes wait for the lease.
  def test_a_lease_is_released_while_the_store_is_skipped
    clocked do
      assert @safe.acquire("lease", "me", ttl: 10)
      fail_once
      @store.broken = false
      assert @safe.compare_and_delete("lease", "me")
      assert_empty @store.read_multi(%w[lease])
    end
  end

  private

  def clocked(&block)
    @safe.write_multi({ "a" => "A" }) if @store.read_multi(%w[a]).empty?
    @store.clocked(&block)
  end

  def fail_once
    @store.broken = true
    assert_empty @safe.read_multi(%w[a])
  end

  def read_at(now)
    @store.now = now
    @safe.read_multi(%w[a])
  end
end
