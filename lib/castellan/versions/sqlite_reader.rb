# frozen_string_literal: true

require "sqlite3"

module Castellan
  module Versions
    # Runs a version's SELECT on a SQLite3::Database, prepared once per connection.
    #
    #   reader = SQLiteReader.new(prepared: true)
    #   reader.value(raw, "castellan_1", "SELECT …")            # => String or nil
    #
    # Checking the triggers scans the whole schema, which costs three times as much as the version. SQLite
    # re-prepares a statement whenever the schema has changed, by any connection, also if the change was
    # rolled back, and counts this (SQLITE_STMTSTATUS_REPREPARE). So the triggers are checked only if that
    # count has changed.
    #
    # Before version 2 of the sqlite3 gem, a database with open statements cannot be closed, so statements are
    # not kept.
    class SQLiteReader
      ERROR = SQLite3::Exception
      UNKNOWN = [SQLite3::SQLException].freeze # missing table or column
      LIMIT = 256
      KEEPS_STATEMENTS = SQLite3::VERSION.to_i >= 2
      CHECKED = :@castellan_checked
      SCHEMA_VERSION = /-\d+\z/
      private_constant :KEEPS_STATEMENTS, :CHECKED, :SCHEMA_VERSION

      def initialize(prepared:)
        @prepared = prepared && KEEPS_STATEMENTS
        freeze
      end

      # @param tokens [String, nil] statement that reads the same without checking the triggers
      # @return [String, nil]
      def value(raw, name, sql, tokens = nil)
        brief = tokens && @prepared && prepare(raw, tokens, tokens) or return first(raw, name, sql)
        token = step(brief)
        preparations = brief.stat(:reprepares)
        checked, schema = brief.instance_variable_get(CHECKED)
        return token && (token + schema) if preparations == checked

        first(raw, name, sql).tap do |found|
          brief.instance_variable_set(CHECKED, found && [preparations, found[SCHEMA_VERSION]])
        end
      end

      private

      def first(raw, name, sql)
        run(raw, name, sql) { |statement| statement.step&.first }
      end

      def step(statement)
        statement.step&.first
      ensure
        statement.reset! unless statement.closed?
      end

      # Always resets the statement: an open cursor holds a lock.
      def run(raw, name, sql)
        return raw.prepare(sql) { |statement| yield statement } unless @prepared && (statement = prepare(raw, name, sql))

        begin
          yield statement
        ensure
          statement.reset! unless statement.closed?
        end
      end

      def prepare(raw, name, sql)
        statements = raw.instance_variable_get(:@castellan_statements) || raw.instance_variable_set(:@castellan_statements, {})
        statement = statements[name]
        return statement if statement && !statement.closed?
        return if statements.size >= LIMIT

        statements[name] = raw.prepare(sql)
      end
    end
  end
end
