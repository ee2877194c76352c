# frozen_string_literal: true

require "test_helper"
require_relative "active_record_world"

# One record is read by its id, with a statement that is the same in every request.
module OneRecordContract
  include ActiveRecordWorld::RolledBack

  def setup
    super
    @users = Array.new(3) { |index| models::User.create!(email: "#{index}@example.com", last_name: "n#{index}", code: "c#{index}") }
  end

  def test_one_record_is_written_like_a_collection
    resource = resource { attributes :email, :last_name }
    id = @users[1].id
    expected = %({"data":{"type":"users","id":"#{id}","attributes":{"email":"1@example.com","last_name":"n1"}}})
    assert_equal expected, resource.render(id: id)
    assert_equal expected, resource.render(models::User.where(email: "1@example.com"), id: id.to_s)
    assert_equal '{"data":null}', resource.render(id: "abc")
    assert_equal '{"data":null}', resource.render(models::User.none, id: id)
    models::User.where(email: "2@example.com").scoping { assert_equal '{"data":null}', resource.render(id: id) }
    assert_equal 3, JSON.parse(resource.render(models::User.where(id: @users)))["data"].size
  end

  def test_the_notification_equals_that_of_active_record
    resource = resource { attributes :email }
    payloads = payloads { resource.render(id: @users[0].id) }
    assert_equal 1, payloads.size
    assert_equal [%i[async binds connection name row_count sql statement_name type_casted_binds], 1, "#{models::User.name} Castellan"],
                 [payloads[0].keys.sort, payloads[0][:row_count], payloads[0][:name]]
    assert_same @connection, payloads[0][:connection]
    assert_match(/\ASELECT .*users/, payloads[0][:sql])
  end

  def test_the_notification_contains_the_error
    payloads = payloads do
      @connection.transaction(requires_new: true) do
        assert_raises(ActiveRecord::StatementInvalid) { adapter.session { |session| session.rows("SELECT no_such_column FROM users") } }
        raise ActiveRecord::Rollback
      end
    end
    assert_equal [["ActiveRecord::StatementInvalid"]], payloads.filter_map { |payload| payload[:exception]&.first(1) }
  end

  def test_statements_that_write_raise
    assert_raises(ActiveRecord::ReadOnlyError) { adapter.session { |session| session.rows("DELETE FROM users") } }
  end

  # Where all subscribers take monotonic times, they are called without ActiveSupport's handle.
  def test_subscribers_of_monotonic_times_receive_what_others_do
    resource = resource { attributes :email }
    others = payloads { 2.times { resource.render(id: @users[0].id) } }
    events = monotonic_events do
      2.times { resource.render(id: @users[0].id) }
      models::User.transaction(requires_new: true) do
        assert_raises(ActiveRecord::StatementInvalid) { adapter.session { |session| session.rows("SELECT no_such_column FROM users") } }
        raise ActiveRecord::Rollback
      end
    end
    assert_equal others, events.first(2).map(&:last)
    assert_equal "ActiveRecord::StatementInvalid", events.last.last[:exception].first
    assert_kind_of ActiveRecord::StatementInvalid, events.last.last[:exception_object]
    events.each do |name, began, ended, id, _|
      assert_equal ["sql.active_record", ActiveSupport::Notifications.instrumenter.id], [name, id]
      assert_operator began, :<=, ended
      assert_in_delta Process.clock_gettime(Process::CLOCK_MONOTONIC), ended, 60
    end
  end

  private

  def adapter = Castellan::Rows.for(models::User)

  def monotonic_events
    found = []
    subscriber = ActiveSupport::Notifications.monotonic_subscribe("sql.active_record") { |*event| found << event }
    yield
    found.reject { |event| event.last[:sql].match?(/SAVEPOINT/) }
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end

  def payloads(&block)
    found = []
    ActiveSupport::Notifications.subscribed(->(*, payload) { found << payload }, "sql.active_record", &block)
    found.reject { |payload| payload[:sql].match?(/SAVEPOINT/) }
  end

  def resource(&body)
    model = models::User
    roles = models::Role
    Class.new(Castellan::Resource) do
      const_set(:RoleNames, Class.new(Castellan::Resource).tap { |resource| resource.model(roles) })
      model model
      type "users"
      class_exec(&body)
    end
  end
end

class OneRecordOnSqliteTest < Minitest::Test
  include OneRecordContract
  include ActiveRecordWorld::OnSqlite
end

class OneRecordOnPostgresTest < Minitest::Test
  include OneRecordContract
  include ActiveRecordWorld::OnPostgres

  def test_the_server_plans_the_query_of_one_record_once
    resources = [resource { attributes :email }, resource { has_many :roles, resource: const_get(:RoleNames) }]
    texts = resources.map { |resource| sent { 12.times { resource.render(id: @users[0].id) } }.uniq }
    plans = @connection.select_rows("SELECT statement, generic_plans FROM pg_prepared_statements").to_h
    texts.flatten.each { |text| assert_operator plans.fetch(text), :>, 0, text }
    assert_equal [1, 2], texts.map(&:size)
  end

  private

  def sent(&)
    payloads(&).reject { |payload| payload[:name] == "SCHEMA" }.map { |payload| payload[:sql] }
  end
end
