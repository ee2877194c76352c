# frozen_string_literal: true

require "active_record"
require_relative "samples"

# The ActiveRecord models of the samples and their data: 5 users, each with an employee, 2 tokens, a note and
# 2
# posts of 3 comments and 2 tags; 5 animals; a tree of 7 categories; 4 orders of 2 items with composite keys.
#
#   Accuracy::Records.connect(adapter: "sqlite3", database: path)   # or the URL of a PostgreSQL
module Accuracy
  module Records
    class Base < ActiveRecord::Base
      self.abstract_class = true
    end

    class User < Base
      belongs_to :manager, class_name: "Accuracy::Records::User", optional: true
      has_many :reports, class_name: "Accuracy::Records::User", foreign_key: :manager_id, inverse_of: :manager
      has_one :employee
      has_one :office, through: :employee
      has_one :latest_post, -> { order(id: :desc) }, class_name: "Accuracy::Records::Post", inverse_of: :user
      has_many :tokens
      has_many :posts
      has_many :published_posts, -> { where(published: true) }, class_name: "Accuracy::Records::Post", inverse_of: :user
      has_many :comments, through: :posts
      has_many :animals
      has_many :notes, as: :owner
    end

    class Employee < Base
      belongs_to :user
      belongs_to :office, optional: true
      delegate :name, to: :user, prefix: true
    end

    class Office < Base
    end

    class Token < Base
      belongs_to :user
      validates :secret, uniqueness: true, on: :checked
    end

    class Post < Base
      belongs_to :user
      has_many :comments
      has_many :notes, as: :owner
      has_and_belongs_to_many :tags, join_table: "posts_tags"
      scope :published, -> { where(published: true) }

      def author_name = user.name
    end

    class Comment < Base
      belongs_to :post, counter_cache: true, touch: true
      belongs_to :author, class_name: "Accuracy::Records::User"
    end

    class Tag < Base
      has_and_belongs_to_many :posts, join_table: "posts_tags"
    end

    class Note < Base
      belongs_to :owner, polymorphic: true
    end

    class Animal < Base
      belongs_to :user
      has_many :visits
    end

    class Dog < Animal
      has_many :walks
    end

    class Cat < Animal
    end

    class Visit < Base
      belongs_to :animal
    end

    class Walk < Base
      belongs_to :dog
    end

    class Category < Base
      belongs_to :parent, class_name: "Accuracy::Records::Category", optional: true
      has_many :children, class_name: "Accuracy::Records::Category", foreign_key: :parent_id, inverse_of: :parent
    end

    class Article < Base
      default_scope { where(deleted: false).order(:id) }
      belongs_to :user
      has_many :notes, as: :owner
    end

    # A model with unusual declarations.
    class Library < Base
      has_many :shelves, foreign_key: :library_code, primary_key: :code, inverse_of: :library
      has_many :books, through: :shelves, disable_joins: true
      has_many :titles, through: :shelves, source: :books
      has_many :cards, dependent: :destroy
      has_one :card
      has_many :recent_cards, ->(library) { where(code: library.code) }, class_name: "Accuracy::Records::Card", inverse_of: :library
    end

    class Shelf < Base
      belongs_to :library, foreign_key: :library_code, primary_key: :code, inverse_of: :shelves
      has_many :books
    end

    class Book < Base
      belongs_to :shelf, optional: false
      enum :state, { lent: 0, there: 1 }
      after_find { @notes = Note.where(owner_type: "Book", owner_id: id).to_a if Book.noted }
      singleton_class.attr_accessor :noted
    end

    class Card < Base
      belongs_to :library
    end

    class Sheet < Base
    end

    KEYS = ActiveRecord.version >= Gem::Version.new("7.2") ? :foreign_key : :query_constraints

    class Order < Base
      self.primary_key = %i[shop_id id]
      has_many :items, KEYS => %i[shop_id order_id], class_name: "Accuracy::Records::Item"
    end

    class Item < Base
      belongs_to :order, KEYS => %i[shop_id order_id], class_name: "Accuracy::Records::Order"
    end

    SCHEMA = {
      users: { name: :string, manager_id: :integer, post_ids_text: :string, last_seen: :integer },
      employees: { user_id: :integer, office_id: :integer, number: :integer }, offices: { name: :string },
      tokens: { user_id: :integer, on_behalf: :boolean, secret: :string },
      posts: { user_id: :integer, title: :string, published: :boolean, comments_count: :integer, updated_at: :datetime },
      comments: { post_id: :integer, author_id: :integer, body: :string }, tags: { name: :string },
      notes: { owner_id: :integer, owner_type: :string }, animals: { type: :string, user_id: :integer },
      visits: { animal_id: :integer }, walks: { dog_id: :integer }, categories: { parent_id: :integer },
      articles: { user_id: :integer, deleted: :boolean }, libraries: { code: :string },
      shelves: { library_code: :string, name: :string }, books: { shelf_id: :integer, state: :integer, title: :string },
      cards: { library_id: :integer, code: :string }, items: { shop_id: :integer, order_id: :integer },
      sheets: { title: :string, lock_version: :integer }
    }.freeze

    module_function

    # @param target [String, Hash] an argument of `establish_connection`
    def connect(target)
      Base.establish_connection(target)
      create_tables(Base.connection)
      create_people
      create_rest
      create_libraries
      create_shop
    end

    def rolled_back
      result = nil
      Base.transaction(requires_new: true) do
        result = yield
        raise ActiveRecord::Rollback
      end
      result
    end

    def create_tables(connection)
      SCHEMA.each do |table, columns|
        connection.create_table(table) { |t| columns.each { |name, type| t.column(name, type) } }
      end
      connection.create_table(:posts_tags, id: false) { |t| %i[post_id tag_id].each { |name| t.integer(name) } }
      connection.create_table(:orders, primary_key: %i[shop_id id]) { |t| %i[shop_id id].each { |name| t.integer(name) } }
    end

    def create_people
      office = Office.create!(name: "north")
      5.times do |number|
        user = User.create!(name: "user #{number}", last_seen: number)
        Employee.create!(user: user, office: office, number: number)
        2.times { |index| Token.create!(user: user, on_behalf: false, secret: "secret #{number} #{index}") }
        Note.create!(owner: user)
        2.times { |index| create_post(user, index) }
      end
      boss = User.order(:id).first
      User.where.not(id: boss.id).update_all(manager_id: boss.id)
    end

    def create_post(user, index)
      post = Post.create!(user: user, title: "title #{user.id} #{index}", published: index.zero?, comments_count: 0,
                          tags: Array.new(2) { Tag.create!(name: "tag") })
      Note.create!(owner: post)
      3.times { Comment.create!(post: post, author: user, body: "body") }
    end

    def create_rest
      users = User.order(:id).to_a
      users.each { |user| 2.times { Article.create!(user: user, deleted: false) } }
      [Dog, Cat, Dog, Cat, Dog].each_with_index { |animal, index| Visit.create!(animal: animal.create!(user: users[index])) }
      Dog.find_each { |dog| Walk.create!(dog: dog) }
      3.times { Sheet.create!(title: "old") }
      root = Category.create!
      2.times { child = Category.create!(parent: root) and 2.times { Category.create!(parent: child) } }
      create_orders
    end

    def create_libraries
      4.times do |number|
        library = Library.create!(code: "L#{number}")
        Card.create!(library: library, code: library.code)
        2.times do |index|
          shelf = Shelf.create!(library: library, name: "shelf #{index}")
          3.times { |place| Book.create!(shelf: shelf, state: place % 2, title: "book #{place}") }
        end
      end
    end

    def create_orders
      [[1, 1], [2, 2], [1, 3], [2, 4]].each do |key|
        Order.create!(id: key)
        2.times { Item.create!(shop_id: key.first, order_id: key.last) }
      end
    end
  end
end

require_relative "shop"
