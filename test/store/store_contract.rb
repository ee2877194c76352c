# frozen_string_literal: true

# The contract of every store. The including class defines `store`; each test uses new keys, because tests
# share servers.
module StoreContract
  def setup
    super
    @prefix = "#{self.class.name}-#{rand(1 << 60).to_s(36)}-".b
    store
  end

  def test_the_linter_finds_nothing
    assert_empty Castellan::Store::Linter.new(store).defects
  end

  def test_reads_back_the_bytes_that_were_written
    bytes = Random.bytes(10_000)
    assert_equal [key("a"), key("b")], store.write_multi({ key("a") => bytes, key("b") => "ü" })
    found = store.read_multi([key("b"), key("none"), key("a")])
    assert_equal({ key("a") => bytes, key("b") => "ü".b }, found)
    assert_equal [Encoding::BINARY], found.values.map(&:encoding).uniq
  end

  def test_reading_no_keys_returns_an_empty_hash
    assert_equal({}, store.read_multi([]))
    assert_equal [], store.write_multi({})
    assert_nil store.delete_multi([])
  end

  def test_bytes_of_other_formats_are_returned_unchanged
    ["1", "12345", "", "\x04\bo:", "nil", "{}", "\u0000", "\r\nEND\r\n", "VALUE x 0 1\r\n1"].each do |bytes|
      store.write_multi({ key("v") => bytes })
      assert_equal bytes.b, store.read_multi([key("v")])[key("v")]
    end
  end

  def test_keys_are_any_bytes_of_any_length
    keys = ["x" * 1000, "#{'x' * 1000}y", "two words", "line\r\nget x", "\xFF\x00".b, "~tilde"].map { |name| key(name) } << "~#{key('t')}"
    store.write_multi(keys.to_h { |name| [name, "value of #{name.hash}"] })
    assert_equal keys.to_h { |name| [name, "value of #{name.hash}"] }, store.read_multi(keys)
  end

  def test_a_later_write_wins_and_if_absent_does_not_write
    store.write_multi({ key("a") => "1" })
    store.write_multi({ key("a") => "2" })
    assert_equal [key("b")], store.write_multi({ key("a") => "3", key("b") => "4" }, if_absent: true)
    assert_equal({ key("a") => "2", key("b") => "4" }, store.read_multi([key("a"), key("b")]))
  end

  def test_an_expired_value_is_gone_and_can_be_written_if_absent
    store.write_multi({ key("a") => "1" }, ttl: 0.05)
    store.write_multi({ key("b") => "1" }, ttl: 3600)
    eventually { store.read_multi([key("a")]).empty? }
    assert_equal [key("a")], store.write_multi({ key("a") => "2" }, if_absent: true)
    assert_equal "1", store.read_multi([key("b")])[key("b")]
  end

  def test_a_lifetime_must_be_above_zero
    assert_raises(ArgumentError) { store.write_multi({ key("a") => "1" }, ttl: 0) }
    assert_raises(ArgumentError) { store.write_multi({ key("a") => "1" }, ttl: -1) }
    assert_raises(ArgumentError) { store.increment(key("n"), ttl: 0) }
  end

  def test_deletes
    store.write_multi({ key("a") => "1", key("b") => "2" })
    store.delete_multi([key("a"), key("none")])
    assert_equal({ key("b") => "2" }, store.read_multi([key("a"), key("b")]))
  end

  def test_counts
    assert_equal [1, 2, 3], Array.new(3) { store.increment(key("n")) }
    assert_equal "3", store.read_multi([key("n")])[key("n")]
  end

  def test_counts_by_an_amount
    assert_equal [100, 101, 121], [100, 1, 20].map { |amount| store.increment(key("n"), amount) }
    assert_equal "121", store.read_multi([key("n")])[key("n")]
  end

  def test_a_counter_keeps_its_expiry
    assert_equal [100, 101], [store.increment(key("n"), 100, ttl: 1), store.increment(key("n"), ttl: 3600)]
    eventually { store.read_multi([key("n")]).empty? }
    assert_equal 1, store.increment(key("n"))
  end

  def test_threads_increment_without_losing_one
    Array.new(4) { Thread.new { 50.times { store.increment(key("n")) } } }.each(&:join)
    assert_equal 201, store.increment(key("n"))
  end

  def test_deletes_a_value_only_if_it_is_equal
    store.write_multi({ key("a") => "mine\xFF" })
    refute store.compare_and_delete(key("a"), "other")
    refute store.compare_and_delete(key("none"), "mine")
    assert store.compare_and_delete(key("a"), "mine\xFF")
    assert_empty store.read_multi([key("a")])
  end

  def test_one_of_many_threads_gets_the_lease
    assert store.supports?(:lease)
    winners = Array.new(8) { |i| Thread.new { store.write_multi({ key("lease") => "t#{i}" }, ttl: 30, if_absent: true) } }.flat_map(&:value)
    assert_equal [key("lease")], winners
  end

  def test_threads_never_read_bytes_of_another_key
    names = Array.new(20) { |i| key("shared#{i}") }
    wrong = Array.new(4) do |thread|
      Thread.new do
        rng = Random.new(thread)
        Array.new(60) do
          name = names.sample(random: rng)
          store.write_multi({ name => "#{name}=#{'x' * rng.rand(2000)}" }, ttl: 60)
          store.read_multi(names).count { |found, bytes| !bytes.start_with?("#{found}=") }
        end.sum
      end
    end.sum(&:value)
    assert_equal 0, wrong
  end

  def test_forked_processes_never_read_bytes_of_another_key
    names = Array.new(20) { |i| key("forked#{i}") }
    store.write_multi(names.to_h { |name| [name, "#{name}=bytes"] }, ttl: 60)
    lists = Array.new(50) { |i| names.rotate(i).first(5) }
    right = -> { lists.all? { |some| store.read_multi(some) == some.to_h { |name| [name, "#{name}=bytes"] } } }
    children = Array.new(2) { fork { answer_with(&right) } }
    assert right.call
    assert_equal [0, 0], children.map { |pid| Process.wait2(pid).last.exitstatus }
  end

  private

  # Runs in a forked process, which must not go on with the tests.
  def answer_with
    right = yield
  ensure
    exit!(right ? 0 : 1)
  end

  def key(name)
    @prefix + name.b
  end
end
