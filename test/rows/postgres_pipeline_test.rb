# frozen_string_literal: true

require "test_helper"
require "json"
require "timeout"
require_relative "active_record_world"

# PostgresDriver::Pipeline sends independent SELECTs together; after any error or interrupt the connection is as
# before.
class PostgresPipelineTest < Minitest::Test
  FAILING = "SELECT 1 / (id - 1) FROM generate_series(1, 1) id"
  LOCK = "SELECT pg_advisory_lock(4711)::text"

  def self.resources = @resources ||= {}

  def setup
    needs :postgres
    skip "this pg has no pipelines" unless Castellan::Rows::PostgresDriver::Pipeline.possible?
    answers("SELECT 1", "SELECT 2") # loads and prepares everything before a test's timeout runs
  end

  def teardown
    @other&.close
  end

  def test_results_come_in_the_order_of_the_queries
    assert_equal 1, round_trips { assert_equal [["one"], ["two"], []], answers("SELECT 'one'", "SELECT 'two'", "SELECT 3 WHERE false") }
    assert_as_before
  end

  def test_one_query_uses_no_pipeline
    assert_equal 0, round_trips { assert_equal [["one"]], answers("SELECT 'one'") }
  end

  def test_with_the_pipeline_off_subscribers_may_query_the_database
    ENV["CASTELLAN_PIPELINE"] = "off"
    asking = ->(*, payload) { base.connection.raw_connection.exec("SELECT 1") if payload[:sql].end_with?("AS one") }
    ActiveSupport::Notifications.subscribed(asking, "sql.active_record") do
      assert_equal 0, round_trips { assert_equal [["1"], ["2"]], answers("SELECT 1 AS one", "SELECT 2 AS one") }
    end
  ensure
    ENV.delete("CASTELLAN_PIPELINE")
  end

  def test_ids_and_prepared_statements
    sql = "SELECT n FROM unnest($1::bigint[]) n ORDER BY n"
    3.times do
      queries = [query(sql, ids: [3, 2], kept: true), query(sql, ids: [1], kept: true), query("SELECT 1 = 2", kept: true)]
      session { |session| session.read(queries) }
      assert_equal [[%w[2], %w[3]], [%w[1]], [%w[f]]], queries.map { |one| one.rows.values }
    end
    assert_equal 1, raw.exec("SELECT count(*) FROM pg_prepared_statements WHERE statement = '#{sql}'").getvalue(0, 0).to_i
  end

  def test_each_statement_is_notified_once_with_its_row_count
    notified = events { answers("SELECT 1 AS one", "SELECT 2 AS one UNION SELECT 3") }
    rows = notified.map { |payload| payload.values_at(:sql, :row_count) }
    assert_equal [["SELECT 1 AS one", 1], ["SELECT 2 AS one UNION SELECT 3", 2]], rows
    assert_equal ["#{adapter.model.name} Castellan"], notified.map { |payload| payload[:name] }.uniq
  end

  def test_an_error_names_its_statement_and_ends_the_others
    notified = events do
      error = assert_raises(ActiveRecord::StatementInvalid) { answers("SELECT 1", FAILING, "SELECT nextval('users_id_seq')") }
      assert_kind_of PG::DivisionByZero, error.cause
      assert_equal FAILING, error.sql
    end
    assert_equal ["SELECT 1", FAILING], notified.map { |payload| payload[:sql] }
    assert_as_before
  end

  def test_a_statement_that_cannot_be_prepared_raises_its_own_error
    3.times do
      error = assert_raises(ActiveRecord::StatementInvalid) { answers("SELECT 1", "SELECT nothing_here", kept: true) }
      assert_equal "SELECT nothing_here", error.sql
      assert_as_before
    end
  end

  def test_an_error_aborts_the_transaction_of_the_caller
    base.transaction do
      assert_raises(ActiveRecord::StatementInvalid) { answers("SELECT 1", FAILING, "SELECT 2") }
      assert_as_before(PG::PQTRANS_INERROR)
      assert_kind_of PG::InFailedSqlTransaction, assert_raises(ActiveRecord::StatementInvalid) { answers("SELECT 1", "SELECT 2") }.cause
      assert_as_before(PG::PQTRANS_INERROR)
      raise ActiveRecord::Rollback
    end
    assert_as_before
  end

  def test_a_rollback_to_a_savepoint_works_after_an_error
    base.transaction do
      assert_raises(ActiveRecord::StatementInvalid) { base.transaction(requires_new: true) { answers("SELECT 1", FAILING, "SELECT 2") } }
      assert_as_before(PG::PQTRANS_INTRANS)
      assert_equal [["1"], ["2"]], answers("SELECT 1", "SELECT 2")
    end
    assert_as_before
  end

  def test_statement_timeout
    held do
      base.transaction do
        base.connection.execute("SET LOCAL statement_timeout = 50")
        assert_raises(ActiveRecord::QueryCanceled) { answers("SELECT 1", LOCK, "SELECT 2") }
        raise ActiveRecord::Rollback
      end
    end
    assert_as_before
  end

  def test_a_connection_that_the_server_closes
    ending = "SELECT pg_terminate_backend(pg_backend_pid())"
    expected = assert_raises(ActiveRecord::ActiveRecordError) { answers(ending) }
    reconnect
    error = assert_raises(ActiveRecord::ActiveRecordError) { answers("SELECT 1", ending, "SELECT 2") }
    assert_equal [expected.class, expected.cause.class], [error.class, error.cause.class]
    reconnect
    assert_equal [["1"], ["2"]], answers("SELECT 1", "SELECT 2")
    assert_as_before
  end

  def test_the_next_read_reconnects_after_the_server_closed_the_connection
    [["SELECT pg_terminate_backend(pg_backend_pid())"], ["SELECT 1", "SELECT pg_terminate_backend(pg_backend_pid())"]].each do |texts|
      assert_raises(ActiveRecord::ConnectionFailed) { answers(*texts) }
      assert_equal [["1"], ["2"]], answers("SELECT 1", "SELECT 2")
    end
  end

  def test_timeout
    held { assert_raises(Timeout::Error) { Timeout.timeout(0.05) { answers("SELECT 1", LOCK, "SELECT 2") } } }
    assert_as_before
    assert_equal [["1"], ["2"]], answers("SELECT 1", "SELECT 2")
  end

  def test_a_timeout_inside_a_transaction
    held { assert_raises(Timeout::Error) { base.transaction { Timeout.timeout(0.05) { answers("SELECT 1", LOCK, "SELECT 2") } } } }
    assert_as_before
  end

  def test_a_thread_that_is_killed
    held do
      connection = nil
      thread = Thread.new do
        connection = base.connection.raw_connection
        answers("SELECT 1", LOCK, "SELECT 2")
      end
      Thread.pass until waiting?
      thread.kill.join
      assert_as_before(PG::PQTRANS_IDLE, connection)
      base.connection_pool.reap
    end
  end

  def test_a_subscriber_that_fails
    failing = ->(*) { raise "no" }
    assert_raises(ActiveSupport::Notifications::InstrumentationSubscriberError, RuntimeError) do
      ActiveSupport::Notifications.subscribed(failing, "sql.active_record") { answers("SELECT 1", "SELECT 2", "SELECT 3") }
    end
    assert_as_before
  end

  def test_statements_that_the_server_dropped_are_prepared_again
    3.times { answers("SELECT 'a'", "SELECT 'b'", "SELECT 'c'", kept: true) }
    raw.exec("DISCARD ALL")
    3.times { assert_equal [["a"], ["b"], ["c"]], answers("SELECT 'a'", "SELECT 'b'", "SELECT 'c'", kept: true) }
    assert_as_before
  end

  def test_a_result_that_was_not_fetched_is_discarded
    raw.send_query("SELECT 7")
    assert_equal [["1"], ["2"]], answers("SELECT 1", "SELECT 2")
  end

  def test_later_statements_of_others_are_sent_at_once
    answers("SELECT 1", "SELECT 2")
    assert_raises(ActiveRecord::StatementInvalid) { answers("SELECT 1", FAILING) }
    raw.send_query("SELECT 'sent'")
    assert raw.block(10), "nothing was sent"
    assert_equal "sent", raw.get_last_result.getvalue(0, 0)
  end

  def test_writes_are_not_pipelined
    ActiveRecord::Base.while_preventing_writes do
      notified = events { assert_raises(ActiveRecord::ReadOnlyError) { answers("SELECT 1", "DELETE FROM users") } }
      assert_empty notified
    end
    assert_as_before
  end

  def test_without_prepared_statements_selects_are_sequential
    base.connection.unprepared_statement { assert_equal 0, round_trips { assert_equal [["1"], ["2"]], answers("SELECT 1", "SELECT 2") } }
  end

  def test_query_transformers_apply
    ActiveRecord.query_transformers << ->(sql, _connection) { "#{sql} /* tagged */" }
    notified = events { assert_equal 0, round_trips { assert_equal [["1"], ["2"]], answers("SELECT 1", "SELECT 2") } }
    assert_equal ["SELECT 1 /* tagged */", "SELECT 2 /* tagged */"], notified.map { |payload| payload[:sql] }
  ensure
    ActiveRecord.query_transformers.pop
  end

  def test_round_trips_are_the_depth_of_the_include_tree
    rolled_back do
      users = people
      2.times { document(world::User.where(id: users), %w[roles posts.comments groups]) }
      notified = events { assert_equal 2, round_trips { document(world::User.where(id: users), %w[roles posts.comments groups]) } }
      assert_equal 7, notified.size
    end
  end

  def test_links_of_records_found_by_id_are_read_in_the_same_round_trip
    rolled_back do
      users = people
      assert_equal(2, round_trips { assert_equal %w[groups posts roles], included(users.first) })
    end
  end

  def test_a_page_and_its_count_are_one_round_trip
    rolled_back do
      users = people
      all = world::User.where(id: users)
      joined = all.joins(:assignments).order(:id)
      { all => 2, all.where(email: "1@example.com") => 1, joined => 2, all.none => 0, all.order(:id).limit(1) => 1 }.each do |scope, total|
        document = nil
        assert_equal 1, round_trips { document = JSON.parse(counted_resource.render(scope, query: { page: { size: "1" } })) }
        assert_equal [{ "total" => total }, [total, 1].min], [document["meta"], document["data"].size]
      end
      grouped = all.group(:id) # its records are loaded, and ActiveRecord counts them
      assert_equal 2, JSON.parse(counted_resource.render(grouped, query: { page: { size: "1" } }))["meta"]["total"]
    end
  end

  def test_records_linked_to_a_missing_record_are_left_out
    rolled_back do
      users = people
      world::User.where(id: users.last).delete_all
      assert_empty included(users.last)
      adapter = Castellan::Rows.for(world::User)
      document = user_resource.document(world::User.all, include: %w[roles posts groups])
      row_set = adapter.fetch(document.rendering.plan, adapter.scopes.by_ids(world::User.all, users))
      assert_equal(["1"] * 3, row_set.tables.drop(1).map { |table| table.rows.ntuples.to_s })
      row_set.release
    end
  end

  private

  def world = ActiveRecordWorld.postgres
  def base = world::Base
  def raw = base.connection.raw_connection
  def adapter = Castellan::Rows.for(world::User)
  def session(&block) = adapter.session(&block)

  def query(sql, ids: nil, kept: false)
    Castellan::Rows::Reading::Query.new(adapter, sql, ids, kept)
  end

  # @return [Array<Array<String>>] the first column of each statement's rows
  def answers(*texts, kept: false)
    queries = texts.map { |sql| query(sql, kept: kept) }
    session { |session| session.read(queries) }
    queries.map { |one| one.rows.column_values(0) }
  end

  def assert_as_before(status = PG::PQTRANS_IDLE, connection = raw)
    assert_equal PG::PQ_PIPELINE_OFF, connection.pipeline_status
    assert_equal status, connection.transaction_status
    assert_nil connection.get_result
    assert_equal "seven", connection.exec("SELECT 'seven'").getvalue(0, 0) if status == PG::PQTRANS_IDLE
  end

  def events(&block)
    notified = []
    ActiveSupport::Notifications.subscribed(->(*, payload) { notified << payload if payload[:name].to_s.end_with?("Castellan") },
                                            "sql.active_record", &block)
    notified
  end

  def round_trips(&block)
    count = 0
    trace = TracePoint.new(:c_call) { |point| count += 1 if point.method_id == :enter_pipeline_mode }
    trace.enable(&block)
    count
  end

  # Holds the lock that {LOCK} waits for.
  def held
    other.exec("SELECT pg_advisory_lock(4711)")
    yield
  ensure
    other.exec("SELECT pg_advisory_unlock_all()")
  end

  def other
    @other ||= PG.connect(Castellan::TestServers.postgres_url.sub(%r{/\w+\z}, "/#{raw.db}"))
  end

  def waiting?
    other.exec("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").getvalue(0, 0) == "1"
  end

  # Reconnects, as an application does after it lost its connection.
  def reconnect
    base.connection.reconnect!
  end

  def rolled_back
    base.transaction do
      yield
      raise ActiveRecord::Rollback
    end
  end

  # @return [Array<Integer>] the ids of two users, each with a role, a group and a post with a comment
  def people
    Array.new(2) do |index|
      user = world::User.create!(email: "#{index}@example.com", first_name: "A", last_name: "B")
      user.assignments.create!(role: world::Role.create!(title: "r#{index}"))
      user.groups << world::Group.create!(name: "g#{index}")
      world::Comment.create!(post: world::Post.create!(author: user, title: "t"), body: "b")
      user.id
    end
  end

  def counted_resource
    models = world
    @counted_resource ||= Class.new(Castellan::Resource) { model(models::User) && type("users") && attributes(:email) && page(size: 1, count: true) }
  end

  def user_resource
    self.class.resources[world] ||= build
  end

  def build
    models = world
    resources = Module.new
    resources.const_set(:CommentResource, Class.new(Castellan::Resource) { model(models::Comment) && attributes(:body) })
    resources.const_set(:RoleResource, Class.new(Castellan::Resource) { model(models::Role) && attributes(:title) })
    resources.const_set(:GroupResource, Class.new(Castellan::Resource) { model(models::Group) && attributes(:name) })
    comment, role, group = %i[CommentResource RoleResource GroupResource].map { |name| resources.const_get(name) }
    post = Class.new(Castellan::Resource) { model(models::Post) && attributes(:title) && has_many(:comments, resource: comment) }
    resources.const_set(:PostResource, post)
    Class.new(Castellan::Resource) do
      model(models::User)
      attributes :email
      has_many :roles, resource: role
      has_many :groups, resource: group
      has_many :posts, resource: post
    end
  end

  def document(scope, include, **options)
    JSON.parse(user_resource.render(scope, include: include, **options))
  end

  def included(id)
    document(:all, %w[roles posts groups], id: id).fetch("included", []).map { |one| one["type"].split("_").last }.sort
  end
end
