# frozen_string_literal: true

require "json"

module Castellan
  module Rows
    # Finds the tables that a statement reads, with the database's help.
    # Returns the reason as a String if they are not certain.
    #
    #   StatementTables.new(adapter).call("SELECT * FROM users, roles")         # => ["roles", "users"]
    #   StatementTables.new(adapter).call("SELECT * FROM users WHERE f(id)")    # => "it calls f"
    #
    # PostgreSQL resolves names in its catalogs and explains the statement; SQLite prepares it with an
    # authorizer. Results are cached for statements that differ only in literals. Not certain are views,
    # functions that are not immutable or not built in, tables of other databases, and row-level security.
    class StatementTables
      LIMIT = 500
      # For other databases: functions that depend only on their arguments, and keywords before a parenthesis.
      CALLS = %w[in and or not exists values count min max sum avg coalesce lower upper length abs round cast any all select from join
                 where on as by nullif over partition distinct using when then else case between like is].freeze
      private_constant :LIMIT, :CALLS

      # @param adapter [ActiveRecordRows, SequelRows]
      def initialize(adapter)
        @adapter = adapter
        @kept = BoundedCache.new(limit: LIMIT)
        freeze
      end

      # @param sql [String]
      # @return [Array<String>, String] the tables, or the reason why they are not certain
      def call(sql)
        words = SqlWords.new(sql, postgres: @adapter.dialect.name == :postgres)
        return "it contains #{words.reason}" if words.reason

        @kept.fetch(words.skeleton) { find(sql, words).freeze }
      rescue StandardError => error
        raise unless DriverError.raised?(error) || orm_error?(error)

        "the database refuses it (#{error.message.lines.first&.chomp})"
      end

      private

      def find(sql, words)
        @adapter.catalog_session do |session|
          case @adapter.dialect.name
          when :postgres then PostgresTables.new(session).call(sql, words)
          when :sqlite then session.raw { |raw| SQLiteTables.new(raw).call(sql, words) }
          else plain(words)
          end
        end
      end

      def orm_error?(error)
        (defined?(::ActiveRecord::ActiveRecordError) && error.is_a?(::ActiveRecord::ActiveRecordError)) ||
          (defined?(::Sequel::Error) && error.is_a?(::Sequel::Error))
      end

      def plain(words)
        calls = words.calls.map(&:downcase) - CALLS
        return "it calls #{calls.first}" if calls.any?

        mentioned = words.names.map(&:last)
        views = @adapter.names(:views) & mentioned
        views.any? ? "it reads the view #{views.first}" : @adapter.names(:tables) & mentioned
      end
    end
  end
end
