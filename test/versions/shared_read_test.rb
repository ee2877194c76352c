# frozen_string_literal: true

require "test_helper"
require "timeout"

class SharedReadTest < Minitest::Test
  def setup
    @read = Castellan::Versions::SharedRead.new
  end

  def test_threads_share_the_statement_that_begins_after_they_asked
    started = Queue.new
    going_on = Queue.new
    statements = 0
    first = Thread.new { @read.call { started << true && going_on.pop && :old } }
    started.pop
    others = Array.new(5) { Thread.new { @read.call { (statements += 1) && :new } } }
    Thread.pass until others.all? { |thread| thread.status == "sleep" }
    going_on << true
    assert_equal [:old, [:new] * 5, 1], [first.value, others.map(&:value), statements]
  end

  # As on a connection whose server is gone, which only the thread that uses it may wait for.
  def test_a_statement_that_hangs_keeps_its_own_thread_waiting_alone
    started = Queue.new
    hanging = Thread.new { @read.call { started << true && sleep } }
    started.pop
    others = Array.new(3) { |number| Thread.new { @read.call { number } } }
    assert_equal [true] * 3, others.map { |thread| !thread.join(10).nil? }
    assert_equal 4, Timeout.timeout(0.5) { @read.call { 4 } }, "the next ones wait no more"
  ensure
    [hanging, *others].each(&:kill).each(&:join)
  end

  def test_a_result_is_never_older_than_the_call
    clock = 0
    late = Array.new(8) do
      Thread.new { Array.new(200) { clock.then { |asked| @read.call { (clock += 1).tap { Thread.pass } } > asked } } }
    end
    assert_equal [true], late.flat_map(&:value).uniq
  end

  def test_an_error_is_raised_in_the_thread_that_sent_the_statement
    messages = Array.new(4) { |n| Thread.new { assert_raises(RuntimeError) { @read.call { raise n.to_s } }.message } }
    assert_equal %w[0 1 2 3], messages.map(&:value)
  end

  def test_threads_that_are_killed_or_time_out_keep_no_other_waiting
    20.times do
      threads = Array.new(6) { Thread.new { assert_raises(Timeout::Error) { Timeout.timeout(0.002) { read_forever } } } }
      threads.sample.kill
      threads.each(&:join)
    end
    assert_equal 1, Timeout.timeout(5) { @read.call { 1 } }
  end

  def test_threads_that_an_error_interrupts_anywhere_keep_no_other_waiting
    random = Random.new(Minitest.seed)
    300.times do
      read = Castellan::Versions::SharedRead.new
      threads = Array.new(4) do
        Thread.new { 200.times { read.call { Thread.pass && 1 } } }.tap { |thread| thread.report_on_exception = false }
      end
      threads.sample(3, random: random).each do |thread|
        sleep random.rand * 0.001
        thread.raise(IOError) if thread.alive?
      end
      assert_equal [true] * 4, threads.map { |thread| joined?(thread) }
    end
  end

  def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent
    started = Queue.new
    going_on = Queue.new
    first = Thread.new { @read.call { started << true && going_on.pop } }
    started.pop
    pid = fork { exit!(Timeout.timeout(5) { @read.call { 0 } }) }
    assert Process.wait2(pid).last.success?
    going_on << true
    first.join
  end

  def test_a_statement_inside_of_its_own_block_is_sent
    assert_equal 2, @read.call { @read.call { 1 } + 1 }
  end

  private

  def joined?(thread)
    !thread.join(5).nil?
  rescue IOError
    true
  end

  def read_forever
    loop { @read.call { Thread.pass } }
  end
end
