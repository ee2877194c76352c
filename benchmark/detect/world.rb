# frozen_string_literal: true

require "active_record"
require "json"

module Benchmarks
  module Detect
    # Two pages of a JSON API on in-memory SQLite: one with 3 queries, the other with 101 queries.
    #
    #   World.seed
    #   World::PAGES.fetch("N+1").call   # => a Rack response
    #
    # There are 100 users with an employee and 3 posts each, 500 records in all. The pages are called 110
    # frames deep; ActiveRecord adds 40.
    module World
      USERS = 100
      FRAMES = 110

      class Base < ActiveRecord::Base
        self.abstract_class = true
      end

      class User < Base
        self.table_name = "users"
        has_one :employee, class_name: "Benchmarks::Detect::World::Employee"
        has_many :posts, class_name: "Benchmarks::Detect::World::Post"
      end

      class Employee < Base
        self.table_name = "employees"
      end

      class Post < Base
        self.table_name = "posts"
      end

      PAGES = {
        "no repetition" => lambda {
          respond(User.preload(:employee, :posts).map { |user| [user.name, user.employee.id, user.posts.map(&:id)] })
        },
        "N+1" => -> { respond(User.all.map { |user| [user.name, user.employee.id] }) }
      }.freeze
      QUERIES = { "no repetition" => 3, "N+1" => 101 }.freeze
      TEXTS = { "no repetition" => 3, "N+1" => 2 }.freeze
      LOADS = { "no repetition" => 3, "N+1" => 1 }.freeze
      WALKS = { "no repetition" => 0, "N+1" => 100 }.freeze

      module_function

      def seed
        ActiveRecord::RuntimeRegistry.sql_runtime # subscribes to statements; loaded in every Rails application
        Base.establish_connection(adapter: "sqlite3", database: ":memory:")
        connection = Base.connection
        connection.create_table(:users) { |table| table.string(:name) }
        connection.create_table(:employees) { |table| table.integer(:user_id) }
        connection.create_table(:posts) { |table| table.integer(:user_id) }
        User.insert_all(Array.new(USERS) { |number| { name: "user #{number}" } })
        Employee.insert_all(User.ids.map { |id| { user_id: id } })
        Post.insert_all(User.ids.flat_map { |id| Array.new(3) { { user_id: id } } })
      end

      # CPU time of the thread, which excludes other work of the machine. Nothing waits here.
      def cpu_ns = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)

      def respond(rows) = [200, { "content-type" => "application/json" }, [JSON.generate(rows)]]

      def deep(frames = FRAMES, &block) = frames.zero? ? yield : deep(frames - 1, &block)
    end
  end
end
