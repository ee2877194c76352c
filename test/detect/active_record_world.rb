# frozen_string_literal: true

require "test_helper"
require "active_record"
require "castellan/detect"

# ActiveRecord models in their own SQLite: 5 users, each with an employee, 2 tokens and 2 posts of 3 comments;
# every comment has an author, every post 2 tags.
#
#   World = ActiveRecordWorld
#   World::User.all.each(&:employee)
module ActiveRecordWorld
  DIRECTORY = Dir.mktmpdir("castellan-world")
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }

  class Base < ActiveRecord::Base
    self.abstract_class = true
    # Without a timeout, because `cache` caches nothing while there is no connection.
    establish_connection(adapter: "sqlite3", database: File.join(DIRECTORY, "world.sqlite3"), pool: 20, idle_timeout: 0)
  end

  class User < Base
    has_one :employee
    has_many :tokens
    has_many :posts
    has_many :comments, through: :posts
    has_many :notes, as: :owner
  end

  class Employee < Base
    belongs_to :user
  end

  class Token < Base
    belongs_to :user
  end

  class Post < Base
    belongs_to :user
    has_many :comments
    has_many :notes, as: :owner
    has_and_belongs_to_many :tags, join_table: "posts_tags"
  end

  class Comment < Base
    belongs_to :post
    belongs_to :author, class_name: "ActiveRecordWorld::User"
  end

  class Tag < Base
  end

  class Note < Base
    belongs_to :owner, polymorphic: true
  end

  Base.connection.instance_eval do
    create_table(:users) { |t| t.string :name }
    create_table(:employees) { |t| t.integer :user_id }
    create_table(:tokens) { |t| t.integer :user_id; t.boolean :on_behalf; t.string :secret } # rubocop:disable Style/Semicolon
    create_table(:posts) { |t| t.integer :user_id }
    create_table(:comments) { |t| t.integer :post_id; t.integer :author_id } # rubocop:disable Style/Semicolon
    create_table(:tags) { |t| t.string :name }
    create_table(:posts_tags, id: false) { |t| t.integer :post_id; t.integer :tag_id } # rubocop:disable Style/Semicolon
    create_table(:notes) { |t| t.integer :owner_id; t.string :owner_type } # rubocop:disable Style/Semicolon
  end

  5.times do |number|
    user = User.create!(name: "user #{number}")
    Employee.create!(user: user)
    2.times { Token.create!(user: user, on_behalf: false) }
    Note.create!(owner: user)
    2.times do
      post = Post.create!(user: user, tags: Array.new(2) { Tag.create!(name: "tag") })
      Note.create!(owner: post)
      3.times { Comment.create!(post: post, author: user) }
    end
  end
end
