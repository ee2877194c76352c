# frozen_string_literal: true

require "test_helper"
require_relative "active_record_world"
require_relative "row_set_values"

# Rows have the values that the records return, on SQLite and on PostgreSQL.
module ActiveRecordRowsContract
  include ActiveRecordWorld::RolledBack

  def setup
    super
    seed
  end

  def test_attributes_and_paths_equal_those_of_the_records
    resource = resource(models::User) do
      type "users"
      attributes :email, :created_at, :status
      attribute :employee_id, from: "employee.id"
      attribute :room, from: "employee.desk.room"
      attribute :desk_room, from: "desk.room"
      attribute :last_login_at, from: "last_login_token.last_used_at"
      attribute :manager_email, from: "manager.email"
      attribute :top_email, from: "manager.manager.email"
      attribute(:full_name, columns: %i[first_name last_name]) { |row| "#{row.first_name} #{row[:last_name]}" }
      attribute(:shout) { |record| record.email.upcase }
    end
    assert_equal(users.map do |user|
      { "id" => user.id.to_s, "email" => user.email, "created_at" => user.created_at.as_json, "status" => user.status,
        "employee_id" => user.employee&.id,
        "room" => user.employee&.desk&.room, "desk_room" => user.desk&.room,
        "last_login_at" => user.last_login_token&.last_used_at&.as_json,
        "manager_email" => user.manager&.email, "top_email" => user.manager&.manager&.email,
        "full_name" => "#{user.first_name} #{user.last_name}", "shout" => user.email.upcase }
    end, rows(resource, models::User.order(:id)))
  end

  %i[roles visible_roles ranked_roles distinct_roles groups reports badges posts comments_received latest_posts notes vehicles cars
     tokens].each do |name|
    define_method("test_#{name}_are_linked_and_included_as_loaded_lazily") do
      assert_related(name, to_many: true)
    end
  end

  %i[employee desk last_login_token distinct_token manager].each do |name|
    define_method("test_#{name}_is_linked_and_included_as_loaded_lazily") do
      assert_related(name, to_many: false)
    end
  end

  def test_includes_go_several_levels_deep
    comments = resource(models::Comment) {
      type "comments"
      attributes :body
    }
    author = resource(models::User) {
      type "users"
      attributes :email
    }
    comments.belongs_to :author, resource: author
    posts = resource(models::Post) {
      type "posts"
      attributes :title
    }
    posts.has_many :comments, resource: comments
    posts.belongs_to :author, resource: author
    expected = models::Post.order(:id).map do |post|
      { "id" => post.id.to_s, "title" => post.title,
        "comments" => post.comments.order(:id).map { |comment|
          { "id" => comment.id.to_s, "body" => comment.body, "author" => simple(comment.author) }
        },
        "author" => simple(post.author) }
    end
    assert_equal expected, rows(posts, models::Post.order(:id), include: "author,comments.author")
  end

  def test_a_join_to_many_never_multiplies
    scope = models::User.joins(:roles).where(roles: { title: %w[chief cook] })
    resource = resource(models::User) {
      type "users"
      attributes :email
    }
    scopes = Castellan::Rows.for(models::User).scopes
    assert_equal scope.distinct.order(:id).map { |user| user.id.to_s }, rows(resource, scope.order(:id)).map { |row| row["id"] }
    assert_equal scope.distinct.count, scopes.count(scope)
    assert_equal scope.distinct.count, scopes.count(scope.distinct)
    page = scopes.page(scopes.order(scope.distinct, [%i[email desc]]), limit: 2, offset: 1)
    assert_equal scope.distinct.order(email: :desc).limit(2).offset(1).map { |user| user.id.to_s }, scopes.ids(page)
  end

  def test_each_level_is_one_statement
    resource = user_resource(:roles, to_many: true)
    rows(resource, models::User.order(:id), include: "roles")
    statements = statements { rows(resource, models::User.order(:id), include: "roles") }
    assert_operator statements.size, :<=, 3
    assert(statements.all? { |sql| sql.start_with?("SELECT") })
  end

  def test_an_empty_scope_sends_no_further_query
    resource = user_resource(:posts, to_many: true)
    rows(resource, models::User.none, include: "posts")
    assert_equal 1, statements { assert_empty rows(resource, models::User.where(id: -1), include: "posts") }.size
  end

  def test_the_sql_of_related_rows_without_a_scope_is_built_once
    plan = plan(user_resource(:posts, to_many: true), include: "posts")
    reader = Castellan::Rows::Reader.new(plan, Castellan::Rows.for(models::User))
    reading = Castellan::Rows::Reading.new(nil)
    link = reader.reader(plan.root, reading).links.first
    texts = Array.new(2) { reader.reader(link.edge.node, reading).own_rows_sql(link) }
    assert_same(*texts)
    assert_equal texts.first, statements { rows(user_resource(:posts, to_many: true), models::User.order(:id), include: "posts") }.last
  end

  def test_a_foreign_key_constraint_saves_the_join_with_the_related_table
    resource = user_resource(:roles, to_many: true)
    links = statements { rows(resource, models::User.order(:id)) }.grep(/assignments/).last
    assert_equal @connection.adapter_name == "PostgreSQL", !links.include?("JOIN")
  end

  def test_a_link_to_a_deleted_record_is_left_out
    group = models::Group.create!(name: "gone")
    ada = models::User.order(:id).first
    ada.groups << group
    models::Group.where(id: group.id).delete_all
    resource = user_resource(:groups, to_many: true)
    assert_equal ada.groups.reload.map { |found| found.id.to_s }.sort, rows(resource, models::User.order(:id)).first["groups"].sort
  end

  def test_a_scope_is_evaluated_in_each_request
    resource = user_resource(:visible_roles, to_many: true)
    plan = plan(resource)
    adapter = Castellan::Rows.for(models::User)
    before = RowSetValues.new(plan, adapter.fetch(plan, models::User.order(:id))).to_a
    models::VisibleRole.unscoped.where(hidden: false).limit(1).update_all(hidden: true)
    after = RowSetValues.new(plan, adapter.fetch(plan, models::User.order(:id))).to_a
    refute_equal before, after
    assert_equal users.map { |user| user.visible_roles.size }, after.map { |row| row["visible_roles"].size }
  end

  def test_a_default_scope_is_that_of_the_thread
    adapter = Castellan::Rows.for(models::User)
    { visible_roles: models::VisibleRole.method(:unscoped), chosen_roles: ->(&block) { with_hidden_roles(&block) } }.each do |name, around|
      plan = plan(user_resource(name, to_many: true))
      sizes = -> { RowSetValues.new(plan, adapter.fetch(plan, models::User.order(:id))).to_a.map { |row| row[name.to_s].size } }
      read = -> { [sizes.call, users.map { |user| user.public_send(name).size }, adapter.scopes.key(models::User.all, plan)] }
      both = [read.call, around.call(&read), read.call]
      both.each { |rows, records,| assert_equal records, rows }
      assert_equal both.first, both.last
      both.transpose.each { |outside, inside,| refute_equal outside, inside }
    end
  end

  def test_the_sql_of_a_scope_is_kept_by_what_it_returns
    adapter = Castellan::Rows.for(models::User)
    constant, *others = %i[visible_roles chosen_roles method_roles cars].map do |name|
      plan = plan(user_resource(name, to_many: true))
      3.times { adapter.fetch(plan, models::User.order(:id)) }
      allocated_objects { adapter.fetch(plan, models::User.order(:id)) }
    end
    others.each { |objects| assert_operator objects, :<, constant * 2 }
    states = [false, true, true, true, false, false, true]
    plan = plan(user_resource(:chosen_roles, to_many: true))
    fetch = -> { RowSetValues.new(plan, adapter.fetch(plan, models::User.order(:id))).to_a }
    rows = states.map { |hidden| with_hidden_roles(hidden: hidden, &fetch) }
    assert_equal(states.map { |hidden| with_hidden_roles(hidden: hidden) { users.map { |user| user.chosen_roles.size } } },
                 rows.map { |found| found.map { |row| row["chosen_roles"].size } })
  end

  def test_a_path_along_a_default_scope_is_kept_by_what_it_returns
    resource = Class.new(Castellan::Resource) { type "assignments" }
    resource.model models::Assignment
    resource.filter :title, from: "chosen_role.title"
    resource.sort :title, from: "chosen_role.title", default: "title"
    read = -> { JSON.parse(resource.render(filter: { title: models::Role.pluck(:title) }))["data"].map { |one| one["id"].to_i } }
    [false, true, true, true, false, false, true].each do |hidden|
      with_hidden_roles(hidden: hidden) do
        expected = models::Assignment.all.select(&:chosen_role).sort_by { |one| [one.chosen_role.title, one.id] }
        assert_equal expected.map(&:id), read.call
      end
    end
  end

  def test_a_class_that_is_loaded_later_is_in_the_association_to_its_superclass
    plan = plan(user_resource(:cars, to_many: true))
    sizes = -> { RowSetValues.new(plan, Castellan::Rows.for(models::User).fetch(plan, models::User.order(:id))).to_a.map { |row| row["cars"].size } }
    before = Array.new(3) { sizes.call }.last
    models.const_set(:Van, Class.new(models::Car)) unless models.const_defined?(:Van, false)
    models::Van.create!(user_id: models::User.minimum(:id), wheels: 6)
    refute_equal before, sizes.call
    assert_equal users.map { |user| user.cars.size }, sizes.call
  end

  def test_threads_share_an_adapter_and_a_plan
    resource = user_resource(:posts, to_many: true)
    plan = plan(resource)
    adapter = Castellan::Rows.for(models::User)
    expected = adapter.fetch(plan, models::User.order(:id)).tables.size
    counts = 4.times.map { Thread.new { 10.times.map { adapter.fetch(plan, models::User.none).tables.size } } }.flat_map(&:value)
    assert_equal [expected], counts.uniq
  end

  def test_related_rows_may_be_in_another_database
    letters = ActiveRecordWorld.letters
    letters.delete_all
    expected = users.map { |user| Array.new(user.id % 3) { |index| letters.create!(user_id: user.id, text: "l#{index}").id.to_s } }
    owner = writer(letters)
    resource = resource(owner) { type "users" }
    resource.has_many :letters, resource: resource(letters) { type "letters" }
    assert_equal(expected, rows(resource, owner.order(:id)).map { |row| row["letters"] })
    assert_equal(expected, rows(resource, owner.order(:id), include: "letters").map { |row| row["letters"].map { |letter| letter["id"] } })
  end

  def test_one_row_of_another_database_loads_models
    letters = ActiveRecordWorld.letters
    letters.delete_all
    users.each { |user| letters.create!(user_id: user.id, text: "to #{user.id}") }
    owner = writer(letters)
    resource = resource(owner) do
      type "users"
      attribute :text, from: "last_letter.text"
    end
    resource.has_one :last_letter, resource: resource(letters) { attributes :text }
    assert_equal(users.map { |user| "to #{user.id}" }, rows(resource, owner.order(:id)).map { |row| row["text"] })
    assert_equal(users.map { |user| "to #{user.id}" },
                 rows(resource, owner.order(:id), include: "last_letter").map { |row| row["last_letter"]["text"] })
    assert_includes resource.document(owner.all).explain, "it is in another database"
  end

  def test_a_scope_with_the_owner_as_argument_loads_models
    assert_includes Castellan::Rows.for(models::Post).association(:own_comments).reason, "takes the owner"
    models::Comment.create!(post: models::Post.first, author: models::Post.first.author, body: "own")
    comments = resource(models::Comment) { type "comments" }
    posts = resource(models::Post) { attributes :title }
    posts.has_many :own_comments, resource: comments
    expected = models::Post.order(:id).map { |post| post.own_comments.map { |comment| comment.id.to_s } }
    refute_empty expected.flatten
    assert_equal(expected, rows(posts, models::Post.order(:id)).map { |row| row["own_comments"] })
    included = rows(posts, models::Post.order(:id), include: "own_comments")
    assert_equal(expected, included.map { |row| row["own_comments"].map { |comment| comment["id"] } })
  end

  def test_query_transformers_and_subscribers_receive_the_statement
    ActiveRecord.query_transformers << ->(sql, _connection) { "#{sql} /* seen */" }
    resource = resource(models::User) {
      type "users"
      attributes :email
    }
    assert_match(%r{/\* seen \*/\z}, statements { rows(resource, models::User.order(:id)) }.first)
  ensure
    ActiveRecord.query_transformers.pop
  end

  def test_explain_collects_the_statements_of_rows
    resource = resource(models::User) { type "users" }
    collected = ActiveRecord::Base.collecting_queries_for_explain { rows(resource, models::User.where(id: 7)) }
    assert_equal(1, collected.count { |sql, *| sql.include?("users") })
  end

  def test_an_application_leaves_no_idle_connection_to_a_file_and_keeps_a_database_in_memory
    Dir.mktmpdir do |directory|
      after_boot(File.join(directory, "pens.sqlite3")) { |pool| assert_equal 0, pool.stat[:idle] }
    end
    after_boot(":memory:") { |pool| pool.with_connection { |connection| assert connection.table_exists?(:pens) } }
  end

  def test_errors_are_those_of_active_record
    resource = resource(models::User) {
      type "users"
      attributes :email
    }
    @connection.transaction(requires_new: true) do
      error = assert_raises(ActiveRecord::StatementInvalid) { rows(resource, models::User.where("no_such_column = 1")) }
      assert_includes error.sql, "no_such_column"
      raise ActiveRecord::Rollback
    end
  end

  def test_the_plan_names_the_tables_that_it_reads
    resource = resource(models::User) do
      type "users"
      attributes :email
      attribute :employee_id, from: "employee.id"
    end
    resource.has_many :roles, resource: resource(models::Role) {
      type "roles"
      attributes :title
    }
    scopes = Castellan::Rows.for(models::User).scopes
    plan = plan(resource)
    assert_equal %w[assignments employees roles users], scopes.tables(plan, models::User.all).sort
    assert_includes scopes.tables(plan, models::User.where(id: models::Post.select(:author_id))), "posts"
  end

  def test_the_tables_are_unknown_if_sql_or_ruby_may_read_any_table
    scopes = Castellan::Rows.for(models::User).scopes
    plan = plan(resource(models::User) {
      type "users"
      attributes :email
    })
    ["random_thing(id) > 1", "created_at < CURRENT_TIMESTAMP", "id IN (SELECT id FROM elsewhere.users)",
     "id IN (SELECT id FROM no_table)"].each do |sql|
      assert_kind_of String, scopes.tables(plan, models::User.where(sql)), sql
    end
    assert_equal %w[users], scopes.tables(plan, models::User.where(email: "x(CURRENT_DATE) FROM y"))
    assert_kind_of String, scopes.tables(plan(resource(models::User) {
      type "users"
      attribute(:loud, preloads: :roles) { |user|
        user.roles.map { |role| role.title.upcase }
      }
    }), models::User.all)
  end

  def test_the_cache_key_of_a_scope_contains_the_current_association_scopes
    scopes = Castellan::Rows.for(models::User).scopes
    plan = plan(user_resource(:chosen_roles, to_many: true))
    assert_includes scopes.key(models::User.all, plan), "hidden"
    refute_includes scopes.key(models::User.all), "hidden"
  end

  private

  def with_hidden_roles(hidden: true)
    Thread.current[:hidden_roles] = hidden
    yield
  ensure
    Thread.current[:hidden_roles] = nil
  end

  def after_boot(database)
    base = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    base.define_singleton_method(:name) { "Boot#{object_id}" }
    base.establish_connection(adapter: "sqlite3", database: database)
    base.connection_pool.with_connection { |connection| connection.create_table(:pens) { |t| t.string :color } }
    pens = Class.new(base) { self.table_name = "pens" }
    resource = resource(pens) { type "pens" }
    Castellan.app { resource(resource) }
    yield base.connection_pool
  ensure
    base&.remove_connection
  end

  # A model of users whose letters are in another database.
  def writer(letters)
    Class.new(models::Base) do
      self.table_name = "users"
      def self.name = "Writer"
      has_many :letters, class_name: letters.name, foreign_key: :user_id
      has_one :last_letter, -> { order(id: :desc) }, class_name: letters.name, foreign_key: :user_id
    end
  end

  def users
    models::User.order(:id).to_a
  end

  def simple(user)
    user && { "id" => user.id.to_s, "email" => user.email }
  end

  def assert_related(name, to_many:)
    resource = user_resource(name, to_many: to_many)
    expected = users.map { |user|
      { "id" => user.id.to_s, name.to_s => to_many ? lazily(user, name).map(&:id).map(&:to_s) : user.public_send(name)&.id&.to_s }
    }
    assert_equal expected, rows(resource, models::User.order(:id)), "linkage of #{name}"
    assert_equal expected.map { |user|
      included(user, name)
    }, rows(resource, models::User.order(:id), include: name.to_s), "included #{name}"
  end

  # Without an order in the association any order is right. Rows and preloading both use the order of the
  # keys, those of the join table first.
  def lazily(user, name)
    found = user.public_send(name)
    found.order_values.empty? ? found.sort_by { |record| join_order(user, name, record) } : found.to_a
  end

  def join_order(user, name, record)
    case name
    when :roles, :visible_roles then [user.assignments.where(role_id: record.id).minimum(:id)]
    when :comments_received then [record.post_id, record.id]
    else [record.id]
    end
  end

  def included(user, name)
    ids = user[name.to_s]
    user.merge(name.to_s => ids.is_a?(Array) ? ids.map { |id| { "id" => id } } : ids && { "id" => ids })
  end

  def user_resource(name, to_many:)
    target = resource(models::User.reflect_on_association(name).klass) { type "related" }
    resource = resource(models::User) { type "users" }
    to_many ? resource.has_many(name, resource: target) : resource.has_one(name, resource: target)
    resource
  end

  def resource(model, &block)
    Class.new(Castellan::Resource) do
      model model
      class_eval(&block)
    end
  end

  def plan(resource, **query)
    request = Castellan::Plan::Request.parse(resource.definition, query.transform_keys(&:to_s))
    Castellan::Plan.compile(resource.definition, request)
  end

  def rows(resource, scope, **query)
    plan = plan(resource, **query)
    RowSetValues.new(plan, Castellan::Rows.for(scope).fetch(plan, scope)).to_a
  end

  def statements
    seen = []
    ActiveSupport::Notifications.subscribed(->(*, payload) { seen << payload[:sql] }, "sql.active_record") { yield }
    seen
  end

  def seed
    chief, cook, ghost = %w[chief cook ghost].map { |title| models::Role.create!(title: title, hidden: title == "ghost") }
    groups = %w[north south].map { |name| models::Group.create!(name: name) }
    desks = %w[a1 b2].map { |room| models::Desk.create!(room: room) }
    people = %w[ada alan grace edsger].each_with_index.map do |name, index|
      models::User.create!(email: "#{name}@example.com", first_name: name, last_name: "L'\"#{index}", code: "c,#{index}", status: index % 2,
                           created_at: Time.utc(2024, 1, 1 + index, 10, 0, 0.123456r))
    end
    people[1].update!(manager: people[0])
    people[2].update!(manager: people[1])
    [[0, cook, 1], [0, chief, 2], [1, ghost, 5], [1, chief, 3], [2, cook, 1], [2, cook, 9], [2, chief, 4]].each do |index, role, rank|
      models::Assignment.create!(user: people[index], role: role, rank: rank)
    end
    people[0].groups = groups
    people[3].groups = [groups[1]]
    models::Employee.create!(user_id: people[0].id, number: "7", desk: desks[1])
    models::Employee.create!(user_id: people[2].id, number: "8")
    people.first(3).each_with_index do |user, index|
      3.times { |time|
        models::Token.create!(user_id: user.id, on_behalf: time == 2 || index == 2, last_used_at: Time.utc(2024, 2, 1 + time, 1, 2, 3))
      }
    end
    models::Badge.create!(user_code: "c,1", label: "x")
    models::Badge.create!(user_code: "c,1", label: "y")
    4.times do |index|
      post = models::Post.create!(title: "p#{index}", author: people[index % 2])
      index.times { |time| models::Comment.create!(post: post, author: people[time], body: "c#{time}") }
    end
    models::Comment.create!(post_id: models::Post.minimum(:id), body: "anonymous")
    models::Note.create!(subject: people[0], body: "on a user")
    models::Note.create!(subject: models::Post.order(:id).first, body: "on a post")
    models::Car.create!(user_id: people[0].id, wheels: 4)
    models::Bike.create!(user_id: people[0].id, wheels: 2)
    models::Car.create!(user_id: people[1].id, wheels: 3)
  end
end

class ActiveRecordRowsOnSqliteTest < Minitest::Test
  include ActiveRecordRowsContract
  include ActiveRecordWorld::OnSqlite
end

class ActiveRecordRowsOnPostgresTest < Minitest::Test
  include ActiveRecordRowsContract
  include ActiveRecordWorld::OnPostgres

  def test_the_tables_are_unknown_with_row_level_security
    plan = plan(resource(models::User) { type "users" })
    assert_equal %w[users], Castellan::Rows.for(models::User).scopes.tables(plan, models::User.all)
    @connection.execute("ALTER TABLE employees ENABLE ROW LEVEL SECURITY")
    scopes = Castellan::Rows.for(models::User).scopes
    linked = plan(user_resource(:employee, to_many: false))
    assert_kind_of String, scopes.tables(linked, models::User.all)
    plan = plan(resource(models::User) { type "users" })
    assert_kind_of String, scopes.tables(plan, models::User.where(id: models::Employee.select(:user_id)))
    assert_equal %w[users], scopes.tables(plan, models::User.all)
  end
end
