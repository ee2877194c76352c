# frozen_string_literal: true

require "pg"
require_relative "../samples"

# Common code with the pg gem and no ORM: 5 users with 2 posts each.
module Accuracy
  module PgSamples
    extend Samples

    GROUP = "pg"

    class << self
      attr_reader :connection

      # @param url [String]
      def connect(url)
        @connection = PG.connect(url)
        connection.exec("CREATE TABLE raw_users (id serial PRIMARY KEY, name text); " \
                        "CREATE TABLE raw_posts (id serial PRIMARY KEY, user_id integer, title text)")
        connection.exec("INSERT INTO raw_users (name) SELECT 'user ' || i FROM generate_series(1, 5) i")
        connection.exec("INSERT INTO raw_posts (user_id, title) SELECT 1 + i % 5, 'title' FROM generate_series(1, 10) i")
      end

      def rolled_back
        connection.exec("BEGIN")
        yield
      ensure
        connection.exec("ROLLBACK")
      end
    end

    kind "statements"
    sample "exec" do
      connection.exec("SELECT id FROM raw_users").each do |row|
        connection.exec("SELECT * FROM raw_posts WHERE user_id = #{row["id"]}").to_a #=> n_plus_one 5
      end
    end
    sample "exec_params" do
      connection.exec("SELECT id FROM raw_users").each do |row|
        connection.exec_params("SELECT * FROM raw_posts WHERE user_id = $1", [row["id"]]) { |result| result.to_a } #=> n_plus_one 5
      end
    end
    sample "exec_prepared" do
      connection.prepare("posts_of_user", "SELECT * FROM raw_posts WHERE user_id = $1")
      (1..3).each do |id|
        connection.exec_prepared("posts_of_user", [id]) #=> n_plus_one 3
      end
    end
    sample "query" do
      (1..3).map { |id| connection.query("SELECT name FROM raw_users WHERE id = #{id}").getvalue(0, 0) } #=> n_plus_one 3
    end
    sample "= ANY, once" do
      connection.exec_params("SELECT * FROM raw_posts WHERE user_id = ANY($1)", ["{1,2,3}"])
    end
    sample "= ANY, in slices" do
      (1..10).each_slice(3) { |ids| connection.exec_params("SELECT * FROM raw_posts WHERE id = ANY($1)", ["{#{ids.join(",")}}"]) }
    end
    sample "the same again" do
      2.times do
        connection.exec("SELECT count(*) FROM raw_users") #=> duplicate 2
      end
    end
    sample "insert", writes: true do
      3.times do |number|
        connection.exec_params("INSERT INTO raw_users (name) VALUES ($1)", ["new #{number}"]) #=> write_loop 3
      end
    end
    sample "insert, refused and tried again", writes: true do
      id = 1
      begin
        connection.exec("SAVEPOINT attempt")
        connection.exec_params("INSERT INTO raw_users (id) VALUES ($1)", [id])
      rescue PG::UniqueViolation
        connection.exec("ROLLBACK TO SAVEPOINT attempt")
        id = 1_000
        retry
      end
    end
    sample "a transaction" do
      2.times { connection.transaction { |inside| inside.exec("SET LOCAL statement_timeout = 1000") } }
    end
    sample "a cursor" do
      connection.transaction do
        connection.exec("DECLARE page CURSOR FOR SELECT * FROM raw_posts")
        3.times { connection.exec("FETCH 3 FROM page").to_a }
      end
    end
    sample "a cursor for each" do
      connection.transaction do
        (1..3).each do |id|
          connection.exec("DECLARE page CURSOR FOR SELECT * FROM raw_posts WHERE user_id = #{id}") #=> n_plus_one 3
          connection.exec("FETCH ALL FROM page").to_a
          connection.exec("CLOSE page")
        end
      end
    end
    sample "locks and sequences" do
      2.times { connection.exec("SELECT pg_advisory_lock(1)") && connection.exec("SELECT pg_advisory_unlock(1)") }
      2.times { connection.exec("SELECT nextval('raw_users_id_seq')") }
    end
  end
end
