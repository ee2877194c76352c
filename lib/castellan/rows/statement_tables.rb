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
        raise unless Adapter.driver_error?(error) || orm_error?(error)

        "the database refuses it (#{error.message.lines.first&.chomp})"
      end

      private

      def find(sql, words)
        @adapter.catalog_session do |session|
          case @adapter.dialect.name
          when :postgres then PostgresTables.new(session).call(sql, words)
          when :sqlite then session.raw { |raw| Sqlite.new(raw).call(sql, words) }
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

      # Finds the tables that a statement reads, by preparing it on SQLite with an authorizer callback.
      #
      #   Sqlite.new(raw).call(sql, SqlWords.new(sql, postgres: false))   # => ["users"], or the reason
      class Sqlite
        READ = 20
        FUNCTION = 31
        KINDS = "SELECT name, CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual table' ELSE type END FROM main.sqlite_master " \
                "WHERE type IN ('table', 'view') UNION ALL SELECT name, 'temporary ' || type FROM sqlite_temp_master"
        # Finds functions that the application defines, and scalar functions that are not deterministic (SQLite
        # does not flag aggregates and window functions as deterministic).
        UNSAFE = "SELECT 1 FROM pragma_function_list WHERE lower(name) = ? AND name NOT IN ('like', 'glob') " \
                 "AND (NOT builtin OR (type = 's' AND NOT flags & 2048)) LIMIT 1"
        CLOCK = %w[date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp].freeze
        # Table-valued functions that read nothing.
        OWN = %w[json_each json_tree].freeze
        private_constant :READ, :FUNCTION, :KINDS, :UNSAFE, :CLOCK, :OWN

        # @param raw [SQLite3::Database]
        def initialize(raw)
          @raw = raw
          @reads = []
          @functions = []
        end

        # @param sql [String]
        # @param words [SqlWords]
        # @return [Array<String>, String] the tables, or the reason why they are not certain
        def call(sql, words)
          internal = words.names.flatten.find { |name| name.start_with?("sqlite_") } # also read to find table-valued functions
          return "#{internal} is no plain table" if internal

          prepare(sql)
          other = @reads.find { |_, database| database && database != "main" }
          return "it reads the database #{other.last}" if other

          function = @functions.uniq.find { |name| CLOCK.include?(name) || @raw.execute(UNSAFE, [name]).any? }
          function ? "it calls #{function}" : tables
        end

        private

        # Restores the application's own authorizer afterwards.
        def prepare(sql)
          before = @raw.instance_variable_get(:@authorizer)
          @raw.authorizer = method(:note)
          @raw.prepare(sql).close
        ensure
          @raw.authorizer = before
        end

        def note(action, name, detail, database, _view)
          case action
          when READ then @reads |= [[text(name), database]] unless OWN.include?(name) || name.start_with?("sqlite_")
          when FUNCTION then @functions << text(detail).downcase
          end
          0
        end

        # Binary strings would be bound as BLOBs.
        def text(name) = name.to_s.dup.force_encoding(Encoding::UTF_8)

        # The authorizer also reports common table expressions, without a database.
        def tables
          kinds = @raw.prepare(KINDS) { |statement| statement.map { |row| row.is_a?(Hash) ? row.values : row.to_a } }
          found = @reads.flat_map do |name, database|
            known = kinds.select { |other, _| other.casecmp?(name) }
            known.empty? && database ? [[name, "table-valued function"]] : known
          end
          odd = found.find { |_, kind| kind != "table" }
          odd ? "#{odd.first} is no plain table (#{odd.last})" : found.map(&:first).uniq
        end
      end
    end
  end
end
