# frozen_string_literal: true

require_relative "active_record_world"

class DetectPollingTest < Minitest::Test
  World = ActiveRecordWorld

  def test_the_same_statement_in_another_schema_is_another_question
    [true, false].each do |native|
      assert_empty asked(native) { |number| "SET search_path TO tenant_#{number}, public" }
      assert_empty asked(native) { |number| "SELECT set_config('app.tenant', '#{number}', true)" }
      assert_equal [:duplicate], asked(native) { |number| "SET statement_timeout = #{number}" }.map(&:kind)
    end
  end

  def test_who_sleeps_before_asking_the_same_again_waits_for_something
    assert_empty(watch { 3.times { World::User.exists?(name: "ready") || sleep(1e-9) } })
    assert_empty(watch { 2.times { World::User.exists?(name: "ready") || sleep(1e-9) } })
    assert_empty(watch { [1, 2, 3].each { |last| World::Note.where("id > ?", last).first || sleep(1e-9) } })
  end

  def test_a_machine_that_stands_still_is_no_program_that_waits
    assert_equal [:duplicate], kinds { 3.times { |time| tell("SELECT * FROM users WHERE name = ?", time, "ready") } }
    assert_equal [:n_plus_one], kinds { 3.times { |time| tell("SELECT COUNT(*) FROM tags WHERE id BETWEEN ? AND 9", time, time) } }
    assert_equal [:n_plus_one], kinds { 3.times { |time| tell("SELECT COUNT(*) FROM notes WHERE id > ?", time, -time) } }
  end

  def test_who_sleeps_between_questions_about_different_things_asks_too_often
    assert_equal [:n_plus_one], kinds { [1, 2, 3].each { |id| World::Tag.find(id) && sleep(1e-9) } }
    assert_equal [:n_plus_one], kinds { [1, 4, 2].each { |id| World::Note.where(id: id..(id + 1)).count && sleep(1e-9) } }
    assert_equal [:n_plus_one], kinds { World::User.all.each { |user| user.posts.to_a && sleep(1e-9) } }
  end

  def test_threads_that_ask_the_same_once_each_do_not_wait
    ask = -> { World::Base.connection_pool.with_connection { World::User.exists?(name: "ready") } }
    assert_equal [:duplicate], kinds { Array.new(3) { Thread.new(&ask) }.each(&:join) }
    assert_empty(watch { Array.new(2) { Thread.new { 3.times { ask.call || sleep(1e-9) } } }.each(&:join) })
  end

  def test_who_sleeps_only_once_does_not_wait
    assert_equal [:duplicate], kinds { [1e-9, nil, nil].each { |time| World::User.exists?(name: "ready") || (time && sleep(time)) } }
  end

  def test_who_waits_in_another_way_until_the_time_is_up_waits_for_something
    reader, _writer = IO.pipe
    lock = Mutex.new
    condition = ConditionVariable.new
    worker = Thread.new { Thread.stop }
    select = -> { IO.select([reader], nil, nil, 1e-9) } # rubocop:disable Lint/IncompatibleIoSelectWithFiberScheduler
    [select, -> { lock.synchronize { condition.wait(lock, 1e-9) } }, -> { worker.join(1e-9) }].each do |wait|
      assert_empty(watch { 3.times { World::User.exists?(name: "ready") || wait.call } })
      assert_equal [:n_plus_one], kinds { [1, 2, 3].each { |id| World::Tag.find(id) && wait.call } }
    end
  ensure
    worker&.kill
  end

  def test_who_was_given_something_before_the_time_was_up_did_not_wait
    reader, writer = IO.pipe
    writer << "x"
    queue = Queue.new
    select = -> { IO.select([reader], nil, nil, 60) } # rubocop:disable Lint/IncompatibleIoSelectWithFiberScheduler
    [select, -> { Thread.new { nil }.join(60) }, -> { (queue << 1) && queue.pop }].each do |get|
      assert_equal [:duplicate], kinds { 3.times { World::User.exists?(name: "ready") || get.call } }
    end
  end

  private

  # What is found when something else is sent before each of three equal statements.
  def asked(native)
    tally = Castellan::Detect::Tally.new(native: native)
    3.times do |number|
      [yield(number), "SELECT count(*) FROM settings"].each { |sql| tally.query(sql, nil, number, 1, false, 1) }
    end
    Castellan::Detect::Verdict.new(tally).findings
  end

  def watch(&block) = Castellan::Detect.watch(slow_ms: nil, &block)

  def kinds(&block) = watch(&block).map(&:kind)

  # A statement that begins seconds after the one before it.
  def tell(sql, seconds, *values)
    Castellan::Recording.current.query(sql, "Load", seconds * 1_000_000_000, 1_000, false, 1, values)
  end
end
