# frozen_string_literal: true

module Castellan
  module Rows
    # Finds the tables that a statement reads, by preparing it on SQLite with an authorizer callback.
    #
    #   SQLiteTables.new(raw).call(sql, SqlWords.new(sql, postgres: false))   # => ["users"], or the reason
    class SQLiteTables
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
