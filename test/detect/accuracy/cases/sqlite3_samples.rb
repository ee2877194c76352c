# frozen_string_literal: true

require "sqlite3"
require_relative "../samples"

# Common code with the sqlite3 gem and no ORM: 5 users with 2 posts each.
module Accuracy
  module Sqlite3Samples
    extend Samples

    GROUP = "sqlite3"

    class << self
      attr_reader :database

      def connect
        @database = SQLite3::Database.new(":memory:")
        database.execute_batch("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); " \
                               "CREATE TABLE posts (id INTEGER PRIMARY KEY, user_id INTEGER, title TEXT)")
        5.times do |number|
          database.execute("INSERT INTO users (name) VALUES (?)", ["user #{number}"])
          2.times { database.execute("INSERT INTO posts (user_id, title) VALUES (?, 'title')", [number + 1]) }
        end
      end

      def rolled_back
        database.transaction
        yield
      ensure
        database.rollback
      end
    end

    kind "statements"
    sample "execute" do
      database.execute("SELECT id FROM users").each do |id,|
        database.execute("SELECT * FROM posts WHERE user_id = ?", [id]) #=> n_plus_one 5
      end
    end
    sample "execute, with the value in the text" do
      database.execute("SELECT id FROM users") do |id,|
        database.execute("SELECT * FROM posts WHERE user_id = #{id}") #=> n_plus_one 5
      end
    end
    sample "get_first_value" do
      (1..3).map do |id|
        database.get_first_value("SELECT name FROM users WHERE id = ?", id) #=> n_plus_one 3
      end
    end
    sample "get_first_row" do
      (1..3).map { |id| database.get_first_row("SELECT * FROM users WHERE id = ?", [id]) } #=> n_plus_one 3
    end
    sample "query" do
      (1..3).each do |id|
        database.query("SELECT * FROM users WHERE id = ?", [id]) { |rows| rows.to_a } #=> n_plus_one 3
      end
    end
    sample "a prepared statement" do
      database.prepare("SELECT * FROM users WHERE id = ?") do |statement|
        (1..3).each do |id|
          statement.execute(id).to_a #=> n_plus_one 3
        end
      end
    end
    sample "a prepared statement whose value is bound beforehand" do
      database.prepare("SELECT * FROM posts WHERE user_id = ?") do |statement|
        (1..3).each do |id|
          statement.bind_param(1, id)
          statement.execute.to_a #=> n_plus_one 3
          statement.reset!
        end
      end
    end
    sample "a prepared statement whose value is bound once" do
      database.prepare("SELECT * FROM posts WHERE user_id = ?") do |statement|
        statement.bind_params(1)
        3.times do
          statement.execute.to_a #=> duplicate 3
          statement.reset!
        end
      end
    end
    sample "a prepared statement that is given a value and then nil" do
      database.prepare("SELECT * FROM posts WHERE user_id = ?") do |statement|
        [1, nil].each { |id| statement.execute(id).to_a } #=> n_plus_one 2
      end
    end
    sample "rows of which one is enough, left by an exception" do
      (1..5).each do |id|
        database.execute("SELECT * FROM posts WHERE user_id = ?", [id]) { raise KeyError if id.odd? } #=> n_plus_one 5
      rescue KeyError
        nil
      end
    end
    sample "a join, once" do
      database.execute("SELECT * FROM posts JOIN users ON users.id = posts.user_id")
    end
    sample "the same again" do
      2.times do
        database.execute("SELECT count(*) FROM users") #=> duplicate 2
      end
    end
    sample "the same of two databases" do
      others = Array.new(2) { SQLite3::Database.new(":memory:").tap { |other| other.execute("CREATE TABLE users (id INTEGER)") } }
      others.each { |other| other.execute("SELECT count(*) FROM users") }
    end
    sample "insert", writes: true do
      3.times do |number|
        database.execute("INSERT INTO users (name) VALUES (?)", ["new #{number}"]) #=> write_loop 3
      end
    end
    sample "insert, refused and tried again", writes: true do
      id = 1
      begin
        database.execute("INSERT INTO users (id) VALUES (?)", [id])
      rescue SQLite3::ConstraintException
        id = 100
        retry
      end
    end
    sample "insert, all at once", writes: true do
      2.times { database.execute("INSERT INTO users (name) VALUES (?), (?)", %w[a b]) }
    end
    sample "pages by key" do
      last = 0
      while (rows = database.execute("SELECT id FROM posts WHERE id > ? ORDER BY id LIMIT 3", [last])).any?
        last = rows.last.first
      end
    end
    sample "transactions and the schema" do
      2.times { database.transaction { database.execute("PRAGMA table_info(users)") } }
    end
  end
end
