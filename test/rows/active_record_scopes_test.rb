# frozen_string_literal: true

require "test_helper"
require_relative "active_record_world"
require_relative "row_set_values"

# For any relation that a controller passes, rows return the ids of its records.
module ActiveRecordScopesContract
  include ActiveRecordWorld::RolledBack

  def setup
    super
    @users = Array.new(4) { |index| models::User.create!(email: "#{index}@example.com", last_name: (4 - index).to_s, code: "c#{index}") }
    @roles = %w[chief cook].map { |title| models::Role.create!(title: title) }
    [[0, 0], [0, 1], [1, 0], [3, 1]].each { |user, role| models::Assignment.create!(user: @users[user], role: @roles[role]) }
    @posts = Array.new(3) { |index| models::Post.create!(title: "p#{index}", author: @users[index % 2]) }
  end

  def test_relations_of_every_kind
    users = models::User
    { "all" => users.all, "where" => users.where(email: "1@example.com"),
      "or" => users.where(id: @users[0].id).or(users.where(last_name: "1")),
      "not" => users.where.not(id: @users[2].id), "includes" => users.includes(:roles, :posts), "preload" => users.preload(:roles),
      "references" => users.includes(:roles).references(:roles).where(roles: { title: "cook" }), "eager_load" => users.eager_load(:posts),
      "joins" => users.joins(:roles).distinct, "left_joins" => users.left_joins(:roles).where(roles: { id: nil }),
      "text joins" => users.joins("INNER JOIN posts ON posts.author_id = users.id").distinct, "group" => users.joins(:posts).group(:id),
      "readonly" => users.readonly, "strict" => users.strict_loading,
      "merge" => users.joins(:roles).merge(models::Role.where(title: "chief")),
      "in" => users.where(id: models::Assignment.select(:user_id)), "none" => users.none, "select" => users.select(:id, :email),
      "unscoped" => users.unscoped, "limit" => users.order(:last_name).limit(2), "reverse" => users.order(:last_name).reverse_order,
      "created through" => @users[0].reports }.each do |name, relation|
      assert_equal relation.map(&:id).uniq.sort, ids(relation), name
    end
  end

  def test_associations_that_the_caller_preloads_are_read_once
    models = self.models
    posts = Class.new(Castellan::Resource) { model(models::Post) && type("posts") && attributes(:title) }
    [proc { attributes :email }, proc { attribute(:shout) { |user| user.email.upcase } }].each do |members|
      users = Class.new(Castellan::Resource) { model(models::User) && type("users") && has_many(:posts, resource: posts) }
      users.class_eval(&members)
      given = [models::User.all, models::User.preload(:posts), models::User.includes(:posts)]
      sent = given.map { |relation| reads_of_posts { users.render(relation, include: "posts") } }
      assert_equal [1, 1, 1], sent
    end
  end

  def test_a_collection_of_a_record
    assert_equal @users[0].posts.order(:id).map(&:id), ids(@users[0].posts)
    assert_equal @users[0].roles.map(&:id).sort, ids(@users[0].roles)
  end

  def test_order_limit_and_offset_work_with_a_join
    relation = models::User.joins(:roles).distinct.order(last_name: :desc).limit(2).offset(1)
    assert_equal relation.map(&:id), ordered(relation)
  end

  def test_ordering_by_a_joined_table_returns_each_row_once
    users = models::User
    posts = models::Post
    [users.joins(:roles).order("roles.title, users.last_name"), users.joins(:roles).order("roles.title DESC", id: :desc),
     users.joins(:roles).group(:id).order(Arel.sql("COUNT(*) DESC, MIN(users.last_name)")),
     users.left_joins(:roles).order(models::Role.arel_table[:title].desc.nulls_last, :id),
     users.eager_load(:posts).order("posts.title DESC, users.id"), users.joins(:posts).merge(posts.order(title: :desc)),
     posts.joins(:author).order("users.last_name", :id), posts.joins(:author).order(Arel.sql("LENGTH(users.code), posts.id DESC")),
     posts.joins(:author).in_order_of("users.last_name", %w[3 4]).order(:id)].each do |relation|
      expected = relation.spawn.map(&:id).uniq
      assert_equal expected, ordered(relation), relation.to_sql
      assert_equal expected, Castellan::Rows.for(relation.klass).scopes.load(relation).map(&:id), relation.to_sql
    end
  end

  def test_an_expression_selected_as_a_column_replaces_its_value
    resource = Class.new(Castellan::Resource) { type("users") && attributes(:email, :code) }
    resource.model(models::User)
    users = models::User.order(:id)
    [users.select("users.*, UPPER(code) AS code"), users.select(:id, :email, Arel.sql("code || '!' AS \"code\"")),
     users.select(:id, :code, models::User.arel_table[:code].as("email")), users.select("users.*, 1 AS one")].each do |relation|
      expected = relation.spawn.map { |user| { "email" => user.email, "code" => user.code } }
      assert_equal expected, JSON.parse(resource.render(relation))["data"].map { |one| one["attributes"] }, relation.to_sql
    end
  end

  def test_pages_in_the_order_of_a_joined_table
    scopes = Castellan::Rows.for(models::User).scopes
    relation = models::User.joins(:roles).order("roles.title DESC, users.id")
    pages = Array.new(3) { |number| ordered(scopes.page(scopes.order(relation, []), limit: 1, offset: number)) }
    assert_equal [[@users[0].id], [@users[3].id], [@users[1].id]], pages
    assert_equal 3, scopes.count(relation)
  end

  def test_ids_that_are_not_numbers_find_nothing
    scopes = Castellan::Rows.for(models::User).scopes
    assert_empty scopes.ids(scopes.by_ids(models::User.all, ["#{@users[0].id}abc", "abc", "99999999999999999999"]))
    assert_equal [@users[0].id.to_s], scopes.ids(scopes.by_ids(models::User.all, [@users[0].id.to_s]))
  end

  def test_a_query_by_id_is_the_same_without_a_relation
    scopes = Castellan::Rows.for(models::User).scopes
    resource = named_by_email
    wanted = [@users[3].id.to_s, @users[1].id, "#{@users[0].id}abc", 2**40, -1]
    chosen = scopes.by_ids(models::User.all, wanted)
    assert_instance_of Castellan::Rows::Ids::Chosen, chosen
    assert_equal %w[1@example.com 3@example.com], emails(resource, chosen)
    assert_equal [@users[1].id, @users[3].id].map(&:to_s).sort, scopes.ids(chosen).sort
    assert_equal [2, chosen.relation.to_sql], [scopes.count(chosen), scopes.key(chosen)]
    assert_equal [@users[3].id.to_s], scopes.ids(scopes.page(scopes.order(chosen.relation, [%i[email desc]]), limit: 1, offset: 0))
    assert_equal %w[users], scopes.tables(plan_of(resource), chosen)
  end

  def test_an_empty_list_of_ids_sends_no_query
    scopes = Castellan::Rows.for(models::User).scopes
    sent = 0
    ActiveSupport::Notifications.subscribed(->(*) { sent += 1 }, "sql.active_record") do
      assert_empty emails(named_by_email, scopes.by_ids(models::User.all, %w[abc]))
    end
    assert_equal 0, sent
  end

  def test_a_scope_narrows_a_list_of_ids
    users = models::User
    { users.where(email: "1@example.com") => 1, users.none => 0, users.order(:email) => 4, users.joins(:roles) => 3,
      @users[0].reports => 0 }.each do |scope, size|
      chosen = Castellan::Rows.for(users).scopes.by_ids(scope, @users.map(&:id))
      refute_instance_of Castellan::Rows::Ids::Chosen, chosen
      assert_equal size, emails(named_by_email, chosen).size
    end
    users.where(email: "1@example.com").scoping do
      assert_equal 1, emails(named_by_email, Castellan::Rows.for(users).scopes.by_ids(users.all, @users.map(&:id))).size
    end
  end

  def test_a_query_by_id_for_a_subclass_has_its_type_condition
    car = models::Car.create!(user_id: @users[0].id)
    bike = models::Bike.create!(user_id: @users[0].id)
    scopes = Castellan::Rows.for(models::Car).scopes
    assert_equal [car.id.to_s], scopes.ids(scopes.by_ids(models::Car.all, [car.id, bike.id]))
  end

  def test_ids_may_come_from_another_column_than_the_id_of_the_resource
    scopes = Castellan::Rows.for(models::User).scopes
    @users[2].update!(manager: @users[0])
    assert_equal %w[2@example.com], emails(named_by_email, scopes.by_ids(models::User.all, [@users[0].id], :manager_id))
  end

  def test_a_number_out_of_the_range_of_the_column_finds_nothing
    scopes = Castellan::Rows.for(models::User).scopes
    assert_empty emails(named_by_email, scopes.by_ids(models::User.all, [2**40], :manager_id))
    assert_empty emails(named_by_email, scopes.by_ids(models::User.all, [2**62]))
  end

  def test_the_primary_key_ends_every_order
    scopes = Castellan::Rows.for(models::User).scopes
    assert_match(/"id" ASC\z/, scopes.order(models::User.all, [%i[last_name desc]]).to_sql)
    assert_match(/"id" DESC\z/, scopes.order(models::User.all, [%i[id desc]]).to_sql)
    assert_match(/"last_name" ASC, "users"."id" ASC\z/, scopes.order(models::User.order(:last_name), []).to_sql)
  end

  def test_ordering_works_with_a_column_named_like_that_of_a_subquery
    resource = Class.new(Castellan::Resource)
    resource.model(models::User)
    resource.attribute(:manager_email, from: "manager.email")
    expected = @users.sort_by(&:last_name).map { |user| user.id.to_s }
    assert_equal(expected, documents(resource, models::User.order("last_name, id")).map { |object| object["id"] })
  end

  def test_a_plan_runs_while_writes_are_prevented
    ActiveRecord::Base.while_preventing_writes { assert_equal 4, ids(models::User.all).size }
  end

  def test_a_statement_that_writes_raises
    Castellan::Rows.for(models::User).session do |session|
      assert_raises(ActiveRecord::ReadOnlyError) { session.rows("DELETE FROM users") }
    end
    assert_equal 4, models::User.count
  end

  def test_hostile_ids_are_quoted_as_values
    nasty = models::Badge.create!(user_code: "',\"{}\\--;", label: "x")
    owner = models::User.create!(email: "nasty", code: "',\"{}\\--;")
    resource = Class.new(Castellan::Resource)
    resource.model(models::User)
    badge = Class.new(Castellan::Resource)
    badge.model(models::Badge)
    badge.id(:user_code)
    resource.has_many(:badges, resource: badge)
    resource.id(:code)
    objects = documents(resource, models::User.where(id: owner.id), include: "badges")
    assert_equal [nasty.user_code], objects.map { |object| object["id"] }
    assert_equal([nasty.user_code], objects.first.dig("relationships", "badges", "data").map { |link| link["id"] })
  end

  private

  def reads_of_posts(&block)
    count = 0
    counting = ->(*, payload) { count += 1 if payload[:sql].include?('FROM "posts"') }
    ActiveSupport::Notifications.subscribed(counting, "sql.active_record", &block)
    count
  end

  def named_by_email
    Class.new(Castellan::Resource).tap do |resource|
      resource.model(models::User)
      resource.attribute(:email)
    end
  end

  def plan_of(resource)
    Castellan::Plan.compile(resource.definition, Castellan::Plan::Request.parse(resource.definition, {}))
  end

  def emails(resource, chosen)
    plan = plan_of(resource)
    RowSetValues.new(plan, Castellan::Rows.for(models::User).fetch(plan, chosen)).to_a.map { |row| row["email"] }.sort
  end

  def ids(relation)
    ordered(relation).sort
  end

  def ordered(relation)
    Castellan::Rows.for(relation).scopes.ids(relation).map(&:to_i)
  end

  def documents(resource, scope, **options)
    JSON.parse(resource.render(scope, **options))["data"]
  end
end

class ActiveRecordScopesOnSqliteTest < Minitest::Test
  include ActiveRecordScopesContract
  include ActiveRecordWorld::OnSqlite
end

class ActiveRecordScopesOnPostgresTest < Minitest::Test
  include ActiveRecordScopesContract
  include ActiveRecordWorld::OnPostgres

  def test_a_cancelled_statement_raises_the_error_of_active_record
    @connection.execute("SET LOCAL statement_timeout = 50")
    assert_raises(ActiveRecord::QueryCanceled) { ids(models::User.where("pg_sleep(2) IS NOT NULL")) }
  end
end
