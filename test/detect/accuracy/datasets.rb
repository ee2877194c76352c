# frozen_string_literal: true

require "sequel"
require_relative "samples"

# The Sequel models of the samples, with the same data as those of ActiveRecord (see records.rb), in the
# database of ACCURACY_SEQUEL (a URL) or in SQLite in memory.
module Accuracy
  module Datasets
    DB = Sequel.connect(ENV.fetch("ACCURACY_SEQUEL") { defined?(JRUBY_VERSION) ? "jdbc:sqlite::memory:" : "sqlite:/" })

    TABLES = {
      users: { name: String, manager_id: Integer }, employees: { user_id: Integer, office_id: Integer, number: Integer },
      offices: { name: String }, tokens: { user_id: Integer, on_behalf: TrueClass, secret: String },
      posts: { user_id: Integer, title: String, published: TrueClass, updated_at: Time },
      comments: { post_id: Integer, author_id: Integer, body: String }, tags: { name: String },
      posts_tags: { post_id: Integer, tag_id: Integer }, animals: { kind: String, user_id: Integer },
      visits: { animal_id: Integer }, categories: { parent_id: Integer },
      sheets: { title: String, lock_version: Integer }
    }.freeze
    TABLES.each do |table, columns|
      DB.create_table(table) do
        primary_key :id
        columns.each { |name, type| column(name, type) }
      end
    end
    DB.create_table(:orders) { %i[shop_id id].each { |name| Integer name } && primary_key(%i[shop_id id]) }
    DB.create_table(:items) do
      primary_key :id
      %i[shop_id order_id].each { |name| Integer name }
    end

    class User < Sequel::Model(DB)
      many_to_one :manager, class: "Accuracy::Datasets::User"
      one_to_many :reports, class: "Accuracy::Datasets::User", key: :manager_id
      one_to_one :employee, class: "Accuracy::Datasets::Employee"
      one_to_one :latest_post, class: "Accuracy::Datasets::Post", key: :user_id, order: Sequel.desc(:id)
      one_to_many :tokens, class: "Accuracy::Datasets::Token"
      one_to_many :posts, class: "Accuracy::Datasets::Post"
      one_to_many :published_posts, class: "Accuracy::Datasets::Post", key: :user_id, conditions: { published: true }
      one_to_many :animals, class: "Accuracy::Datasets::Animal"
      one_through_one :office, class: "Accuracy::Datasets::Office", join_table: :employees
    end

    class Employee < Sequel::Model(DB)
      many_to_one :user, class: "Accuracy::Datasets::User"

      def user_name = user.name
    end

    class Office < Sequel::Model(DB)
    end

    class Token < Sequel::Model(DB)
      plugin :validation_helpers
      many_to_one :user, class: "Accuracy::Datasets::User"

      def validate
        super
        validates_unique(:secret) if new?
      end
    end

    class Post < Sequel::Model(DB)
      many_to_one :user, class: "Accuracy::Datasets::User"
      one_to_many :comments, class: "Accuracy::Datasets::Comment"
      many_to_many :tags, class: "Accuracy::Datasets::Tag", join_table: :posts_tags
      dataset_module { where :published, published: true }
    end

    class Comment < Sequel::Model(DB)
      many_to_one :post, class: "Accuracy::Datasets::Post"
      many_to_one :author, class: "Accuracy::Datasets::User"
    end

    class Tag < Sequel::Model(DB)
    end

    class Animal < Sequel::Model(DB)
      plugin :single_table_inheritance, :kind, model_map: { "dog" => "Accuracy::Datasets::Dog", "cat" => "Accuracy::Datasets::Cat" }
      many_to_one :user, class: "Accuracy::Datasets::User"
      one_to_many :visits, class: "Accuracy::Datasets::Visit", key: :animal_id
    end

    class Dog < Animal
    end

    class Cat < Animal
    end

    class Visit < Sequel::Model(DB)
    end

    class Category < Sequel::Model(DB)
      many_to_one :parent, class: "Accuracy::Datasets::Category"
      one_to_many :children, class: "Accuracy::Datasets::Category", key: :parent_id
    end

    class Sheet < Sequel::Model(DB)
      plugin :optimistic_locking
    end

    class Order < Sequel::Model(DB)
      unrestrict_primary_key
      one_to_many :items, class: "Accuracy::Datasets::Item", key: %i[shop_id order_id]
    end

    class Item < Sequel::Model(DB)
      many_to_one :order, class: "Accuracy::Datasets::Order", key: %i[shop_id order_id]
    end

    class TacticalUser < Sequel::Model(DB[:users])
      plugin :tactical_eager_loading
      one_to_many :posts, class: "Accuracy::Datasets::TacticalPost", key: :user_id
    end

    class TacticalPost < Sequel::Model(DB[:posts])
      plugin :tactical_eager_loading
      one_to_many :comments, class: "Accuracy::Datasets::Comment", key: :post_id
    end

    class Reader < Sequel::Model(DB[:users])
      plugin :many_through_many
      many_through_many :tags, [%i[posts user_id id], %i[posts_tags post_id tag_id]], class: "Accuracy::Datasets::Tag"
    end

    module_function

    def rolled_back(&block) = DB.transaction(rollback: :always, savepoint: true, &block)

    def create_people
      office = Office.create(name: "north")
      5.times do |number|
        user = User.create(name: "user #{number}")
        Employee.create(user: user, office_id: office.id, number: number)
        2.times { |index| Token.create(user: user, on_behalf: false, secret: "secret #{number} #{index}") }
        2.times { |index| create_post(user, index) }
      end
      boss = User.order(:id).first
      User.exclude(id: boss.id).update(manager_id: boss.id)
    end

    def create_post(user, index)
      post = Post.create(user: user, title: "title #{user.id} #{index}", published: index.zero?, updated_at: Time.at(0))
      2.times { post.add_tag(Tag.create(name: "tag")) }
      3.times { Comment.create(post: post, author: user, body: "body") }
    end

    def create_rest
      users = User.order(:id).all
      [Dog, Cat, Dog, Cat, Dog].each_with_index { |animal, index| Visit.create(animal_id: animal.create(user: users[index]).id) }
      3.times { Sheet.create(title: "old", lock_version: 0) }
      root = Category.create
      2.times { child = Category.create(parent: root) and 2.times { Category.create(parent: child) } }
      [[1, 1], [2, 2], [1, 3], [2, 4]].each do |shop, id|
        Order.create(shop_id: shop, id: id)
        2.times { Item.create(shop_id: shop, order_id: id) }
      end
    end

    create_people
    create_rest

    class Country < Sequel::Model(DB[:offices])
      plugin :static_cache
    end
    DB.freeze
  end
end
