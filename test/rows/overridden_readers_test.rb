# frozen_string_literal: true

require "test_helper"
require "active_record"
require "json"
require "sequel"

# A block that names columns receives the values of the model's readers, whatever else the request selects.
class OverriddenReadersTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class User < Base
    def name = super.upcase
  end

  class UserResource < Castellan::Resource
    model User
    type :users
    attributes :age
    attribute(:greeting, columns: [:name]) { |row| "Hello #{row.name}" }
    attribute(:shout) { |user| user.name }
    link(:self, columns: [:name]) { |row| "/users/#{row.name}" }
  end

  class AgeResource < Castellan::Resource
    model User
    type :users
    attributes :age
    link(:self, columns: [:name]) { |row| "/users/#{row.name}" }
  end

  def setup
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.execute("CREATE TABLE users (id integer PRIMARY KEY, name varchar(40), age integer)")
    Base.connection.execute("INSERT INTO users VALUES (1, 'ada', 36)")
  end

  def test_a_block_of_columns_uses_overridden_readers_with_any_fieldset
    [%w[greeting], %w[greeting shout], %w[greeting age]].each do |fields|
      [User.all, User.all.to_a].each do |given|
        assert_equal "Hello ADA", first(UserResource, given, fields: { users: fields.join(",") }).dig("attributes", "greeting"), fields
      end
    end
  end

  def test_a_link_of_columns_uses_overridden_readers
    [User.all, User.all.to_a].each { |given| assert_equal "/users/ADA", first(AgeResource, given).dig("links", "self") }
  end

  def test_explain_names_the_overridden_reader
    assert_includes UserResource.document(User.all, fields: { users: "greeting" }).explain, "greeting: its block reads name"
  end

  # The default of has_secure_token since `load_defaults 7.1`.
  def test_a_model_with_a_secure_token_is_read_as_rows
    Base.connection.execute("INSERT INTO users VALUES (2, NULL, 40)")
    guests = Class.new(Base) do
      self.table_name = "users"
      has_secure_token :name, on: :initialize
    end
    resource = Class.new(Castellan::Resource) do
      model guests
      type :guests
      attributes :name
    end
    refute_includes resource.document.explain, "after_initialize"
    assert_equal ["ada", nil], JSON.parse(resource.render)["data"].map { |guest| guest.dig("attributes", "name") }
  end

  def test_overridden_readers_of_sequel
    database = Sequel.sqlite
    database.run("CREATE TABLE users (id integer PRIMARY KEY, name varchar(40))")
    database.run("INSERT INTO users VALUES (1, 'ada')")
    users = Class.new(Sequel::Model(database[:users])) { define_method(:name) { super().upcase } }
    resource = Class.new(Castellan::Resource) do
      model users
      type :users
      attribute(:greeting, columns: [:name]) { |row| "Hello #{row.name}" }
    end
    [users.dataset, users.all].each { |given| assert_equal "Hello ADA", first(resource, given).dig("attributes", "greeting") }
  ensure
    forget(database)
  end

  private

  def first(resource, given, **options) = JSON.parse(resource.render(given, **options))["data"].first
end
