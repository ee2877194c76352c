# frozen_string_literal: true

module Benchmarks
  # Fills the tables of examples/users like most applications: three tokens per user, simple indexes.
  #
  #   People.fill(1000)   # 1,000 users, 3,000 tokens, 2,000 roles and 2,000 groups of users
  #
  # Foreign keys have an index of their own, so the last token of a user needs a sort, and no unique index
  # limits the employees of a user.
  module People
    TABLES = %w[users employees authentication_tokens assignments group_assignments].freeze
    COLUMNS = { "users" => "email, first_name, last_name", "employees" => "user_id, number, department",
                "authentication_tokens" => "user_id, on_behalf, last_used_at", "assignments" => "user_id, role_id",
                "group_assignments" => "user_id, group_id" }.freeze
    TIME = { "PostgreSQL" => "timestamp '2024-03-01 12:00' + i * interval '1 minute'",
             "SQLite" => "datetime('2024-03-01 12:00', i || ' minutes') || '.000000'" }.freeze
    private_constant :TABLES, :COLUMNS, :TIME

    module_function

    # @param users [Integer] the number of users; the tokens of a user are far apart in the table, as if it
    #   had grown over years
    def fill(users)
      connection = ActiveRecord::Base.connection
      index(connection)
      TABLES.each { |table| connection.execute("DELETE FROM #{table}") }
      rows(users, TIME.fetch(connection.adapter_name)).each { |table, (count, values)| insert(connection, table, count, values) }
      TABLES.each { |table| connection.execute(connection.adapter_name == "SQLite" ? "ANALYZE #{table}" : "VACUUM ANALYZE #{table}") }
    end

    def index(connection)
      connection.remove_index(:employees, :user_id)
      connection.add_index(:employees, :user_id)
      connection.remove_index(:authentication_tokens, %i[user_id on_behalf id])
      connection.add_index(:authentication_tokens, :user_id)
    end

    def rows(users, time)
      { "users" => [users, "'user' || i || '@example.org', 'First' || i, 'Last' || i"],
        "employees" => [users * 6 / 7, "i, 'E' || i, 'Sales'"],
        "authentication_tokens" => [users * 3, "1 + (i * 7919) % #{users}, i % 5 = 0, #{time}"],
        "assignments" => [users * 2, "1 + i % #{users}, 1 + i % 11"],
        "group_assignments" => [users * 2, "1 + i % #{users}, 1 + i % 23"] }
    end

    def insert(connection, table, count, values)
      numbers = "WITH RECURSIVE numbers(i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM numbers WHERE i < #{count})"
      connection.execute("#{numbers} INSERT INTO #{table} (id, #{COLUMNS.fetch(table)}, created_at, updated_at) " \
                         "SELECT i, #{values}, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP FROM numbers")
    end
    private_class_method :index, :rows, :insert
  end
end
