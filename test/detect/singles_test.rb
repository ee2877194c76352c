# frozen_string_literal: true

require_relative "active_record_world"
require "castellan/instrument/threads"
require_relative "sequel_world"

class DetectSinglesTest < Minitest::Test
  World = ActiveRecordWorld
  COUNTING = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) " \
             "SELECT count(*) FROM numbers, users WHERE users.id = 1"

  def test_one_slow_statement_is_a_finding_with_one_stack
    finding = only(slow_ms: 20) do
      count_to(1_000_000)
    end
    assert_equal [:slow_query, 1, nil], [finding.kind, finding.count, finding.fix]
    assert_equal "test/detect/singles_test.rb:#{method(:count_to).source_location.last}", finding.location
    frames = finding.stack.first(2).map { |frame| frame[/\A[^:]+:\d+/] }
    assert_equal [finding.location, "test/detect/singles_test.rb:#{__LINE__ - 5}"], frames
    assert_includes finding.fix_refused, "EXPLAIN"
    assert_operator finding.total_ns, :>=, 20_000_000
    refute_predicate finding, :repeats?
  end

  def test_slow_ms_is_configurable
    assert_empty(watch(slow_ms: nil) { count_to(1_000_000) })
    assert_empty(watch(slow_ms: 600_000) { count_to(1_000_000) })
  end

  def test_a_slow_statement_of_a_thread_is_found
    finding = only(slow_ms: 20) { Thread.new { World::Base.connection_pool.with_connection { count_to(1_000_000) } }.join }
    assert_equal :slow_query, finding.kind
  end

  def test_the_assertion_is_about_repetition_only
    test = Class.new { include Castellan::Detect::Assertions }.new
    test.define_singleton_method(:assert) { |passed, message| raise message.call unless passed }
    assert_equal 30, test.assert_no_repeated_queries { wide { World::User.eager_load(posts: :comments).flat_map { |user| user.posts.flat_map(&:comments) }.size } }
  end

  def test_a_condition_on_an_included_table_that_multiplies_the_rows_is_a_finding
    finding = wide do
      only do
        World::User.includes(:tokens).where(tokens: { on_behalf: false }).to_a
      end
    end
    assert_equal [:wide_join, 1, 5, "ActiveRecordWorld::User#tokens"], finding.to_h.values_at(:kind, :count, :parent_count, :association)
    assert_equal "test/detect/singles_test.rb:#{__LINE__ - 4}", finding.location
    assert_equal "110 rows came for 5 users: choose the records by a subquery at #{finding.location} and write .preload(:tokens) " \
                 "instead of the JOIN", finding.fix_refused
    assert_equal [5, 5], wide { [World::User.includes(:tokens).where(tokens: { on_behalf: false }), chosen_apart] }.map { |users| users.to_a.size }
  end

  def test_a_join_that_only_loads_becomes_a_preload
    finding = wide { only { World::User.eager_load(:tokens).to_a } }
    assert_includes finding.fix, "write .preload(:tokens) instead of the JOIN at #{finding.location}"
    assert_empty(wide { watch { World::User.preload(:tokens).to_a } })
  end

  class Follower < World::Base
    self.table_name = "users"
    has_many :tokens, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id
    after_find { World::Post.where(user_id: id).count }
  end

  def test_the_statement_of_a_join_is_reported_although_callbacks_of_its_records_send_others
    finding = wide { watch { Follower.includes(:tokens).where(tokens: { on_behalf: false }).to_a } }.find { |one| one.kind == :wide_join }
    assert_match(/\Aselect users\.id as t0_r0, .* where tokens\.on_behalf = \?/, finding.fingerprint)
    assert_includes finding.fix_refused, "choose the records by a subquery"
    assert_operator finding.total_ns, :>, 0
  end

  def test_a_join_of_few_rows_is_no_finding
    assert_empty(watch { World::User.eager_load(:tokens).to_a })
    assert_empty(wide { watch { World::Token.eager_load(:user).to_a } })
  end

  def test_production_reports_slow_statements_without_repetition
    watch = Castellan::Detect.production(sample: 1, min_ms: 0, slow_ms: nil)
    app = ->(_env) { [200, {}, [World::User.eager_load(:tokens).to_a.size.to_s]] }
    wide { 2.times { watch.call(app, { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/users" }) } }
    assert_equal [[:wide_join, 2]], watch.findings.map { |entry| [entry.finding.kind, entry.times] }
  ensure
    watch&.stop
  end

  def test_an_eager_graph_of_sequel_becomes_an_eager
    SequelWorld::DB.transaction(rollback: :always) do
      user = SequelWorld::User.first
      SequelWorld::DB[:tokens].import(%i[user_id on_behalf], Array.new(100) { [user.id, true] })
      finding = only { SequelWorld::User.eager_graph(:tokens).all }
      assert_equal [:wide_join, 5, "SequelWorld::User#tokens"], finding.to_h.values_at(:kind, :parent_count, :association)
      assert_includes finding.fix, "write .eager(:tokens) instead of the JOIN at test/detect/singles_test.rb:#{__LINE__ - 2}"
      both = only { SequelWorld::User.eager_graph(:tokens).eager(:posts).all }
      assert_equal [finding.fingerprint, finding.association], [both.fingerprint, both.association]
      assert_empty(watch { SequelWorld::User.eager(:tokens).all })
    end
  end

  private

  # Without `slow_ms`, because any query is slow on a busy machine.
  def watch(slow_ms: nil, &block) = Castellan::Detect.watch(slow_ms: slow_ms, &block)

  def only(...)
    findings = watch(...)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end

  def count_to(number) = World::Base.connection.select_value(format(COUNTING, number))

  # Adds 100 tokens, 20 for each user.
  def wide
    result = nil
    World::Base.transaction do
      World::Token.insert_all(World::User.ids.flat_map { |id| Array.new(20) { { user_id: id, on_behalf: false } } })
      result = yield
      raise ActiveRecord::Rollback
    end
    result
  end

  # The code that the fix proposes.
  def chosen_apart = World::User.where(id: World::Token.where(on_behalf: false).select(:user_id)).preload(:tokens)
end
