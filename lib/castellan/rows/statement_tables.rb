# frozen_string_literal: true

require "json"

module Castellan
  module Rows
    # The tables that a statement reads, found by the database; a String with the reason where that is not certain.
    #
    #   StatementTables.new(adapter).call("SELECT * FROM users, roles")         # => ["roles", "users"]
    #   StatementTables.new(adapter).call("SELECT * FROM users WHERE f(id)")    # => "it calls f"
    #
    # PostgreSQL resolves every name of the text in its catalogs and explains the statement; SQLite prepares it with an
    # authorizer. Asked once a text; numbers and plain strings may differ. Views, functions that are not immutable or not the
    # database's own, tables of other databases and row-level security are not certain.
    class StatementTables
      LIMIT = 500
      # Without a database that resolves names: the functions that depend on their arguments alone.
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
      # @return [Array<String>, String]
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
