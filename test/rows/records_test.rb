# frozen_string_literal: true

require "test_helper"
require_relative "active_record_world"
require_relative "sequel_world"

# Documents of given records use the loaded associations and read the others as rows.
module RecordsContract
  include ActiveRecordWorld::RolledBack

  def setup
    super
    seed
  end

  INCLUDES = [nil, "roles", "posts.comments", "employee,manager,reports", "groups,latest_posts", "vehicles,last_login_token"].freeze

  def test_records_are_written_like_their_rows
    INCLUDES.each do |include|
      expected = user_resource.render(users, include: include)
      assert_equal JSON.parse(expected), JSON.parse(user_resource.render(users.to_a, include: include)), "nothing loaded, #{include}"
      loaded = users.preload(:roles, :employee, :manager, :reports, :groups, :vehicles, :last_login_token, posts: :comments).to_a
      assert_equal normal(expected), normal(user_resource.render(loaded, include: include)), "all loaded, #{include}"
    end
  end

  def test_loaded_associations_send_no_query
    loaded = users.preload(:roles, :employee, :manager, posts: :comments).to_a
    fields = { users: %i[email employee_id roles employee manager posts] }
    assert_empty(statements { user_resource.render(loaded, include: "roles,employee,manager,posts.comments", fields: fields) })
  end

  def test_unloaded_associations_take_one_query_per_level
    records = users.to_a
    sent = statements { user_resource.render(records, fields: { users: %i[email employee_id employee manager last_login_token] }) }
    assert_equal 1, sent.size
    sent = statements { user_resource.render(records, include: "posts,roles", fields: { users: %i[posts roles], posts: %i[title] }) }
    assert_operator sent.size, :<=, 4
    assert_equal 0, instantiated { user_resource.render(records, include: "posts,roles") }
  end

  def test_unsaved_changes_of_a_record_are_written
    record = users.first
    record.email = "changed"
    record.association(:posts).target = [models::Post.new(id: 77, title: "unsaved")]
    document = JSON.parse(user_resource.render([record], include: "posts", fields: { users: %i[email posts], posts: %i[title] }))
    assert_equal "changed", document["data"][0]["attributes"]["email"]
    assert_equal({ "title" => "unsaved" }, document["included"][0]["attributes"])
  end

  def test_a_record_that_is_passed_twice_has_its_links_once
    loaded = users.preload(:posts).to_a
    expected = user_links(loaded)
    assert_operator expected.first.size, :>, 1
    assert_equal [*expected, expected.first], user_links([*loaded, loaded.first])
    assert_equal [*expected, expected.first], user_links([*loaded, users.first])
  end

  def user_links(records)
    JSON.parse(user_resource.render(records, fields: { users: %i[posts] }))["data"].map do |object|
      object.dig("relationships", "posts", "data").map { |link| link["id"] }
    end
  end

  def test_an_association_that_some_records_have_loaded_is_preloaded_for_the_others
    records = users.to_a
    records.first.posts.load
    expected = users.map { |user| user.posts.map { |post| post.id.to_s } }
    links = JSON.parse(user_resource.render(records, include: "posts"))["data"].map do |object|
      object.dig("relationships", "posts", "data").map { |link| link["id"] }
    end
    assert_equal expected.map(&:sort), links.map(&:sort)
  end

  def test_one_record_is_one_resource
    document = JSON.parse(user_resource.render(users.first))
    assert_equal users.first.id.to_s, document["data"]["id"]
    assert_equal 200, user_resource.document(users.first).status
    assert_equal '{"data":[]}', user_resource.render([])
  end

  def test_a_loaded_relation_is_not_read_again
    relation = users.load
    assert_empty(statements { user_resource.render(relation, fields: { users: %i[email] }) })
    refute_empty(statements { user_resource.render(users, fields: { users: %i[email] }) })
  end

  def test_an_unsaved_record_sends_no_query
    fresh = models::User.new(id: 999, email: "new", roles: [models::Role.new(id: 5, title: "boss")])
    document = nil
    assert_empty(statements { document = JSON.parse(user_resource.render([fresh], include: "roles", fields: { users: %i[email roles] })) })
    assert_equal [%w[new], %w[boss]], [document["data"].map { |object| object["attributes"]["email"] },
                                       document["included"].map { |object| object["attributes"]["title"] }]
  end

  def test_any_object_with_the_readers_may_replace_a_record
    plain = Struct.new(:id, :email).new(7, "struct@example.com")
    document = JSON.parse(user_resource.render([plain], fields: { users: %i[email] }))
    assert_equal "struct@example.com", document["data"][0]["attributes"]["email"]
  end

  def test_a_resource_without_a_model_accepts_records
    resource = Class.new(Castellan::Resource) do
      type "users"
      attributes :email
      attribute(:loud) { |user| user.email.upcase }
    end
    resource.has_many(:posts, resource: Class.new(Castellan::Resource) {
      type "posts"
      attributes :title
    })
    document = nil
    sent = statements { document = JSON.parse(resource.render(users.to_a, include: "posts")) }
    assert_operator sent.size, :<=, 3, sent.join("; ")
    assert_equal models::Post.order(:author_id, :id).map(&:title).sort, document["included"].map { |post| post["attributes"]["title"] }.sort
    assert_equal users.first.email.upcase, document["data"][0]["attributes"]["loud"]
  end

  def test_a_block_preloads_its_declared_associations
    resource = Class.new(Castellan::Resource) { type "users" }
    resource.model(models::User)
    resource.attribute(:titles, preloads: :roles) { |user| user.roles.map(&:title).sort }
    { users => 3, users.to_a => 2 }.each do |given, expected|
      document = nil
      sent = statements { document = JSON.parse(resource.render(given)) }
      assert_equal expected, sent.size, sent.join("; ")
      assert_equal(users.map { |user| user.roles.map(&:title).sort }, document["data"].map { |object| object["attributes"]["titles"] })
    end
  end

  def test_preloads_take_a_tree_as_active_record_does
    resource = Class.new(Castellan::Resource) { type "users" }
    resource.model(models::User)
    resource.attribute(:authors, preloads: { posts: :author }) { |user| user.posts.map { |post| post.author.id } }
    few, many = [1, 3].map { |count| statements { resource.render(users.limit(count)) }.size }
    assert_equal few, many
  end

  def test_an_opaque_attribute_loads_models_of_its_type_only_and_once
    resource = user_resource
    shouting = Class.new(resource) { attribute(:shout) { |user| user.email.upcase } }
    made = []
    subscriber = ->(*, event) { made << [event[:class_name], event[:record_count]] }
    document = ActiveSupport::Notifications.subscribed(subscriber, "instantiation.active_record") { shouting.render(users, include: "roles") }
    assert_equal [[models::User.name, users.count]], made
    expected = JSON.parse(resource.render(users, include: "roles"))
    expected["data"].each { |object| object["attributes"]["shout"] = object["attributes"]["email"].upcase }
    assert_equal expected, JSON.parse(document)
  end

  def test_an_opaque_type_that_is_included_is_loaded_once
    loud = Class.new(role_resource) { attribute(:shout) { |role| role.title.upcase } }
    resource = Class.new(Castellan::Resource) { type "users" }
    resource.model(models::User)
    resource.has_many(:roles, resource: loud)
    made = instantiated { @document = JSON.parse(resource.render(users, include: "roles")) }
    assert_equal models::Role.joins(:assignments).distinct.count, made
    assert_equal(@document["included"].map { |role| role["attributes"]["title"].upcase },
                 @document["included"].map { |role| role["attributes"]["shout"] })
  end

  def test_models_come_from_the_callers_own_relation
    resource = Class.new(Castellan::Resource) { type "users" }
    resource.model(models::User)
    resource.attribute(:posts_count) { |user| user[:posts_count] }
    counted = models::User.left_joins(:posts).group(:id).select("users.*, COUNT(posts.id) AS posts_count").order(:id)
    document = JSON.parse(resource.render(counted))
    assert_equal(counted.map(&:posts_count), document["data"].map { |object| object["attributes"]["posts_count"] })
  end

  def test_a_block_with_two_arguments_receives_the_viewer
    resource = Class.new(Castellan::Resource) { type "users" }
    resource.model(models::User)
    resource.attribute(:mine) { |user, viewer| user.id == viewer }
    resource.attribute(:greeting, columns: %i[first_name]) { |row, viewer| "#{row.first_name} meets #{viewer}" }
    viewer = users.first.id
    [users, users.to_a].each do |given|
      attributes = JSON.parse(resource.render(given, viewer: viewer))["data"].map { |object| object["attributes"] }
      assert_equal [true] + ([false] * (users.count - 1)), attributes.map { |object| object["mine"] }
      assert_equal "#{users.first.first_name} meets #{viewer}", attributes.first["greeting"]
    end
  end

  def test_an_attribute_that_was_not_selected_raises
    given = users.select(:id, :first_name).to_a
    assert_raises(ActiveModel::MissingAttributeError) { user_resource.render(given, fields: { users: %i[email] }) }
    names = JSON.parse(named.render(given))["data"].map { |one| one["attributes"]["first_name"] }
    assert_equal users.map(&:first_name), names
  end

  def test_a_private_reader_stays_private
    secretive = Class.new(models::User) do
      self.table_name = "users"
      def self.name = "Secretive"

      private

      def first_name = super.to_s
    end
    resource = Class.new(Castellan::Resource) { attributes :first_name }
    resource.model(secretive)
    [secretive.order(:id), secretive.order(:id).to_a].each { |given| assert_raises(NoMethodError) { resource.render(given) } }
  end

  def test_strict_loading_raises_for_unloaded_associations
    strict = users.strict_loading.to_a
    resource = Class.new(Castellan::Resource) { attribute(:ids) { |user| user.posts.map(&:id) } }
    resource.model(models::User)
    assert_raises(ActiveRecord::StrictLoadingViolationError) { resource.render(strict) }
    linked = JSON.parse(user_resource.render(strict, fields: { users: %i[posts] }))["data"]
    assert_equal(users.map { |user| user.posts.size }, linked.map { |one| one["relationships"]["posts"]["data"].size })
  end

  def test_a_client_cannot_filter_or_sort_given_records
    { filter: { role: "x" }, sort: "email", page: { size: 1 } }.each do |family, value|
      resource = Class.new(user_resource) do
        filter(:role) { |scope, _| scope }
        sort :email
        page size: 2
      end
      error = assert_raises(Castellan::BadRequest) { resource.document(users.to_a, query: { family => value }) }
      assert_equal family.name, error.parameter
      raw = Struct.new(:to_unsafe_h).new({ family => value })
      assert_raises(Castellan::BadRequest) { resource.document(users.to_a, query: raw) }
    end
  end

  private

  def users = models::User.order(:id)

  # Sorts linkage and included: without an order, preloading and rows may return different orders.
  def normal(bytes)
    document = JSON.parse(bytes)
    document["included"]&.sort_by! { |object| object.values_at("type", "id") }
    [*document["data"], *document["included"]].each do |object|
      object["relationships"]&.each_value { |relationship| relationship["data"] = Array(relationship["data"]).sort_by(&:to_a) }
    end
    document
  end

  def named
    Class.new(Castellan::Resource) { attributes :first_name }.tap { |resource| resource.model(models::User) }
  end

  def role_resource
    world = models
    @role_resource ||= Class.new(Castellan::Resource) do
      model world::Role
      type "roles"
      attributes :title
    end
  end

  def simple(name, *attributes)
    world = models
    Class.new(Castellan::Resource) do
      model world.const_get(name)
      type name.to_s.downcase
      attributes(*attributes)
    end
  end

  def user_resource
    @user_resource ||= begin
      world = models
      resource = Class.new(Castellan::Resource) do
        model world::User
        type "users"
        attributes :email, :status, :created_at
        attribute :employee_id, from: "employee.id"
        attribute(:full_name, columns: %i[first_name last_name]) { |row| "#{row.first_name} #{row.last_name}" }
      end
      posts = simple(:Post, :title, :published_at)
      posts.type("posts")
      posts.has_many(:comments, resource: simple(:Comment, :body))
      relate(resource, posts)
    end
  end

  def relate(resource, posts)
    resource.has_many(:roles, resource: role_resource)
    resource.has_many(:posts, :latest_posts, resource: posts)
    resource.has_many(:groups, resource: simple(:Group, :name))
    resource.has_many(:reports, resource: simple(:User, :email))
    resource.belongs_to(:manager, resource: simple(:User, :email))
    resource.has_one(:employee, resource: simple(:Employee, :number))
    resource.has_one(:last_login_token, resource: simple(:Token, :last_used_at))
    resource.has_many(:vehicles, resource: simple(:Vehicle, :wheels))
    resource
  end

  def statements(&block)
    seen = []
    subscriber = ->(*, payload) { seen << payload[:sql] unless payload[:name] == "SCHEMA" }
    ActiveSupport::Notifications.subscribed(subscriber, "sql.active_record", &block)
    seen
  end

  def instantiated(&block)
    made = 0
    ActiveSupport::Notifications.subscribed(->(*, event) { made += event[:record_count] }, "instantiation.active_record", &block)
    made
  end

  def seed
    people = %w[ada alan grace].map { |name| models::User.create!(email: "#{name}@example.com", first_name: name, code: name) }
    people[1].update!(manager: people[0])
    roles = %w[chief cook].map { |title| models::Role.create!(title: title) }
    [[0, 0], [0, 1], [2, 1]].each { |user, role| models::Assignment.create!(user: people[user], role: roles[role]) }
    people[0].groups << models::Group.create!(name: "north")
    models::Employee.create!(user_id: people[1].id, number: "7")
    2.times { |time| models::Token.create!(user_id: people[0].id, on_behalf: false, last_used_at: Time.utc(2024, 2, 1 + time)) }
    posts = Array.new(4) { |index| models::Post.create!(title: "p#{index}", author: people[index % 2], published_at: Time.utc(2024, 1, 1)) }
    models::Comment.create!(post: posts[0], body: "first")
    models::Car.create!(user_id: people[0].id, wheels: 4)
  end
end

class RecordsOnSqliteTest < Minitest::Test
  include RecordsContract
  include ActiveRecordWorld::OnSqlite
end

class RecordsOnPostgresTest < Minitest::Test
  include RecordsContract
  include ActiveRecordWorld::OnPostgres
end

# Documents of plain objects without a database.
class ObjectRecordsTest < Minitest::Test
  Level = Struct.new(:id, :title, :height, :built_at, :towers)
  class Tower
    attr_reader :id, :name

    def initialize(id, name)
      @id = id
      @name = name
    end
  end

  class TowerResource < Castellan::Resource
    attributes :name
  end

  class LevelResource < Castellan::Resource
    attributes :title, :height, :built_at
    attribute(:shout) { |level| (level.is_a?(Hash) ? level[:title] : level.title).upcase }
    has_many :towers, resource: TowerResource
    has_one(:highest, resource: TowerResource) { |level| (level.is_a?(Hash) ? level[:towers] : level.towers).max_by(&:name) }
  end

  def test_structs_objects_and_hashes_are_written_the_same
    towers = [Tower.new(1, "north"), Tower.new("x", "south")]
    time = Time.utc(2024, 1, 31, 10, 20, 30.5r)
    level = Level.new(3, "Keep", 12.5, time, towers)
    hash = { id: 3, title: "Keep", height: 12.5, built_at: time, towers: towers }
    texts = { "id" => 3, "title" => "Keep", "height" => 12.5, "built_at" => time, "towers" => towers, title: "Keep" }
    attributes = { "title" => "Keep", "height" => 12.5, "built_at" => "2024-01-31T10:20:30.500Z", "shout" => "KEEP" }
    [level, hash, texts.merge(towers: towers)].each do |record|
      document = JSON.parse(LevelResource.render([record], include: "towers,highest"))
      assert_equal ["levels", "3", attributes], document["data"][0].values_at("type", "id", "attributes")
      assert_equal [%w[towers 1], %w[towers x]], document["included"].map { |object| object.values_at("type", "id") }
      assert_equal "x", document["data"][0].dig("relationships", "highest", "data", "id")
    end
  end

  def test_a_missing_hash_key_is_named
    error = assert_raises(Castellan::Error) { LevelResource.render([{ id: 1, titel: "x" }], fields: { levels: [:title] }) }
    assert_includes error.message, "has no :title"
  end

  def test_a_missing_reader_is_named
    broken = Class.new { def id = title }.new
    missing = Struct.new(:id, :title)
    { { fields: { levels: [:height] } } => "height", { fields: { levels: [:towers] } } => "towers" }.each do |sent, name|
      error = assert_raises(Castellan::Error) { LevelResource.render([Level.new(1), missing.new(2, "Motte")], **sent) }
      assert_match(/\Aa record of .+ has no #{name} \(it is #<struct .*id=2, title="Motte"/, error.message)
    end
    error = assert_raises(Castellan::Error) { LevelResource.render([Level.new(1, "Keep", 1, nil, [Object.new])], fields: { levels: [:towers] }) }
    assert_match(/\Aa record of Object has no id/, error.message)
    assert_raises(NameError) { LevelResource.render([broken], fields: { levels: [:title] }) }.tap { |one| refute_kind_of Castellan::Error, one }
  end

  def test_values_of_mixed_classes_are_each_written_as_they_are
    records = [1, "two", nil, true, 1.5, BigDecimal("2.5"), Date.new(2024, 1, 1), [1, { a: nil }], :sym].map.with_index do |value, index|
      { id: index, title: value }
    end
    written = JSON.parse(LevelResource.render(records, fields: { levels: [:title] }))["data"].map { |object| object["attributes"]["title"] }
    assert_equal [1, "two", nil, true, 1.5, "2.5", "2024-01-01", [1, { "a" => nil }], "sym"], written
  end

  def test_nan_and_infinity_are_null_as_in_rails
    written = LevelResource.render([{ id: 1, title: Float::NAN }, { id: 2, title: 1.5 }], fields: { levels: [:title] })
    assert_equal([nil, 1.5], JSON.parse(written)["data"].map { |object| object["attributes"]["title"] })
  end
end

# Documents of Sequel's records.
module SequelRecordsContract
  def setup
    @company = world::Company.create(name: "Keep & Co")
    @tag = world::Tag.create(label: "urgent")
    @logs = Array.new(3) { |index| world::MailLog.create(number: index, company: @company, comment: " c", created_at: Time.utc(2024)) }
    @logs.first.add_tag(@tag)
  end

  def teardown
    world::DB[:mail_logs_tags].where(tag_id: @tag.id).delete
    @logs.each(&:delete)
    @tag.delete
    @company.delete
  end

  def test_records_are_written_like_their_rows
    logs = world::MailLog.where(company_id: @company.id).order(:id)
    [nil, "company", "tags"].each do |include|
      expected = JSON.parse(resource.render(logs, include: include))
      assert_equal expected, JSON.parse(resource.render(logs.all, include: include)), include.to_s
      assert_equal expected, JSON.parse(resource.render(logs.eager(:company, :tags).all, include: include)), include.to_s
    end
  end

  def test_a_block_preloads_its_declared_associations
    logs = Class.new(Castellan::Resource) do
      attribute(:labels, preloads: %i[tags company]) { |log| [log.company.name, *log.tags.map(&:label)] }
    end
    logs.model(world::MailLog)
    scope = world::MailLog.where(company_id: @company.id).order(:id)
    given = scope.all
    expected = scope.all.map { |log| [log.company.name, *log.tags.map(&:label)] }
    [scope, given].each do |source|
      assert_equal(expected, JSON.parse(logs.render(source))["data"].map { |one| one["attributes"]["labels"] })
    end
    assert(given.all? { |log| log.associations.key?(:tags) && log.associations.key?(:company) })
  end

  def test_hashes_of_a_dataset_are_records
    plain = Class.new(Castellan::Resource) { attributes :name }
    plain.model(world::DB[:companies])
    assert_equal plain.render(world::DB[:companies].order(:id)), plain.render(world::DB[:companies].order(:id).all)
  end

  private

  def resource
    tags = Class.new(Castellan::Resource) { attributes :label }
    tags.model(world::Tag)
    companies = Class.new(Castellan::Resource) { attributes :name }
    companies.model(world::Company)
    logs = Class.new(Castellan::Resource) { attributes :number, :comment, :created_at, :value_net }
    logs.model(world::MailLog)
    logs.has_many(:tags, resource: tags)
    logs.belongs_to(:company, resource: companies)
    logs
  end
end

class SequelRecordsOnSqliteTest < Minitest::Test
  include SequelRecordsContract

  def world = SequelWorld.sqlite
end

class SequelRecordsOnPostgresTest < Minitest::Test
  include SequelRecordsContract

  def setup
    needs :postgres
    super
  end

  def teardown
    super if @company
  end

  def world = SequelWorld.postgres
end
