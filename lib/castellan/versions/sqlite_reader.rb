# frozen_string_literal: true

require "digest/sha2"
require "sqlite3"
require_relative "../sqlite_statements"

module Castellan
  module Versions
    # Runs the SELECT of a version on a SQLite3::Database, with the connection's {SqliteStatements}.
    #
    #   reader = SQLiteReader.new(prepared: true)
    #   reader.value(raw, "SELECT …")            # => String or nil
    #
    # Checking the triggers scans the whole schema, which takes three times as long as reading the version.
    # SQLite re-prepares a statement after any change of the schema, by any connection, even if it was rolled
    # back, and counts this (SQLITE_STMTSTATUS_REPREPARE). So the triggers are checked only if the count has
    # changed.
    class SQLiteReader
      ERROR = SQLite3::Exception
      CHECKED = :@castellan_checked
      DEFINITIONS = /-\h{16}\z/
      private_constant :CHECKED, :DEFINITIONS

      def initialize(prepared:)
        @prepared = prepared && SqliteStatements.keeps?
        freeze
      end

      # @param tokens [String, nil] a statement that reads the same tokens without checking the triggers
      # @return [String, nil] with a digest of what follows a line break
      def value(raw, sql, tokens = nil)
        return digested(raw.prepare(sql) { |statement| statement.step&.first }) unless @prepared

        statements = SqliteStatements.for(raw)
        return first(statements, sql) unless tokens

        statements.with(tokens) do |statement|
          token = statement.step&.first
          checked(statement, token) { first(statements, sql) }
        end
      end

      private

      def first(statements, sql)
        digested(statements.with(sql) { |statement| statement.step&.first })
      end

      def digested(found)
        token, definitions = found&.split("\n", 2)
        definitions ? "#{token}-#{Digest::SHA256.hexdigest(definitions)[0, 16]}" : token
      end

      def checked(statement, token)
        preparations = statement.stat(:reprepares)
        known, definitions = statement.instance_variable_get(CHECKED)
        return token && (token + definitions) if preparations == known

        yield.tap { |found| statement.instance_variable_set(CHECKED, found && [preparations, found[DEFINITIONS]]) }
      end
    end
  end
end
