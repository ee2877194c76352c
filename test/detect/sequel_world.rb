# frozen_string_literal: true

require "test_helper"
require "sequel"
require "castellan/detect"

# Sequel models in a frozen SQLite in memory: 5 users, each with an employee, 2 tokens and 2 posts of 3
# comments; every comment has an author, every post 2 tags.
#
# SequelWorld::Archive has models of the same tables on another database: 2 users with 2 posts each.
#
#   World = SequelWorld
#   World::User.all.each(&:employee)
module SequelWorld
  DB = Sequel.sqlite
  TABLES = {
    users: { name: String }, employees: { user_id: Integer }, tokens: { user_id: Integer, on_behalf: TrueClass, secret: String },
    posts: { user_id: Integer }, comments: { post_id: Integer, author_id: Integer }, tags: { name: String },
    posts_tags: { post_id: Integer, tag_id: Integer }
  }.freeze
  TABLES.each do |table, columns|
    DB.create_table(table) do
      primary_key :id
      columns.each { |name, type| column(name, type) }
    end
  end

  class User < Sequel::Model(DB)
    one_to_one :employee, class: "SequelWorld::Employee"
    one_to_many :tokens, class: "SequelWorld::Token"
    one_to_many :posts, class: "SequelWorld::Post"
  end

  class Employee < Sequel::Model(DB)
    many_to_one :user, class: "SequelWorld::User"
  end

  class Token < Sequel::Model(DB)
    many_to_one :user, class: "SequelWorld::User"
  end

  class Post < Sequel::Model(DB)
    many_to_one :user, class: "SequelWorld::User"
    one_to_many :comments, class: "SequelWorld::Comment"
    many_to_many :tags, class: "SequelWorld::Tag", join_table: :posts_tags
  end

  class Comment < Sequel::Model(DB)
    many_to_one :post, class: "SequelWorld::Post"
    many_to_one :author, class: "SequelWorld::User"
  end

  class Tag < Sequel::Model(DB)
  end

  class TacticalUser < Sequel::Model(DB[:users])
    plugin :tactical_eager_loading
    one_to_many :posts, class: "SequelWorld::Post", key: :user_id
  end

  5.times do |number|
    user = User.create(name: "user #{number}")
    Employee.create(user: user)
    2.times { Token.create(user: user, on_behalf: false) }
    2.times do
      post = Post.create(user: user)
      2.times { post.add_tag(Tag.create(name: "tag")) }
      3.times { Comment.create(post: post, author: user) }
    end
  end
  DB.freeze

  module Archive
    DB = Sequel.sqlite
    { users: {}, posts: { user_id: Integer }, comments: { post_id: Integer, author_id: Integer } }.each do |table, columns|
      DB.create_table(table) do
        primary_key :id
        columns.each { |name, type| column(name, type) }
      end
    end

    class User < Sequel::Model(DB)
      one_to_many :posts, class: "SequelWorld::Archive::Post"
    end

    class Post < Sequel::Model(DB)
      one_to_many :comments, class: "SequelWorld::Archive::Comment"
    end

    class Comment < Sequel::Model(DB)
      many_to_one :author, class: "SequelWorld::Archive::User"
    end

    2.times do
      user = User.create
      2.times { user.add_post({}).add_comment(author_id: user.id) }
    end
  end
end
