# frozen_string_literal: true

module Castellan
  module Versions
    # Generates the SQL of exact versions in SQLite: three row triggers and one random number per table.
    #
    #   SQLiteTriggers.install("users")          # => statements
    #   SQLiteTriggers.current(%w[users roles])  # => a SELECT of one value, NULL if a trigger is missing
    #
    # SQLite allows one writer at a time, so no shards are needed. Each changed row draws a new 64-bit random
    # number. Unlike a counter, a number that was rolled back is never used again, so a transaction that has
    # written may cache what it reads. A writer pays one small update per row.
    #
    # `INSERT OR REPLACE` fires the delete trigger only with `PRAGMA recursive_triggers`, but it always fires
    # the insert trigger, so the version changes. Views and virtual tables have no version.
    module SQLiteTriggers
      EVENTS = %w[insert update delete].freeze
      SCHEMA = [
        "CREATE TABLE IF NOT EXISTS castellan_versions (relation TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID"
      ].freeze
      private_constant :EVENTS, :SCHEMA

      module_function

      # @param table [String]
      # @return [Array<String>] SQL statements
      def install(table)
        SCHEMA + drop_triggers(table) + [stamp(table)] + EVENTS.map { |event| create_trigger(table, event, bump(table)) }
      end

      # @return [Array<String>] SQL statements
      def uninstall(table)
        [*SCHEMA, *drop_triggers(table), "DELETE FROM castellan_versions WHERE relation = #{literal(table)}"]
      end

      # @param tables [Array<String>]
      # @return [String] a SELECT of one text: the tokens, a line break, and the definitions of the tables, because
      #   adding, renaming or dropping a column changes the results of queries. NULL if a trigger is missing, or if a
      #   temporary table hides one of them
      def current(tables)
        "#{tokens(tables)} || char(10) || #{definitions(tables)} WHERE #{triggers(tables)} AND NOT EXISTS (#{hidden(tables)})"
      end

      # @return [String] the same without triggers and definitions, which change only with the schema
      def tokens(tables)
        sums = tables.map { |table| "(SELECT n FROM castellan_versions WHERE relation = #{literal(table)})" }
        "SELECT #{sums.join(" || '.' || ")} || ''"
      end

      # @return [String] a SELECT of the tables for which {.install} was called, even if they lost their
      #   triggers
      def installed
        "SELECT relation FROM castellan_versions JOIN sqlite_master ON type = 'table' AND name = relation ORDER BY 1"
      end

      # @return [String] a SELECT of one value; no row if the table of versions is missing
      def ready
        "SELECT '1' FROM sqlite_master WHERE type = 'table' AND name = 'castellan_versions'"
      end

      def stamp(table)
        "INSERT OR REPLACE INTO castellan_versions (relation, n) VALUES (#{literal(table)}, random())"
      end

      # Inserts a missing row, because structure.sql loads only the triggers. Do not use ON CONFLICT or INSERT
      # OR REPLACE: inside a trigger, the conflict clause of the outer statement overrides them.
      def bump(table)
        where = "relation = #{literal(table)}"
        "INSERT INTO castellan_versions (relation, n) SELECT #{literal(table)}, 0 " \
          "WHERE NOT EXISTS (SELECT 1 FROM castellan_versions WHERE #{where}); UPDATE castellan_versions SET n = random() WHERE #{where}"
      end

      # BEFORE, because RAISE(IGNORE) in another AFTER trigger keeps the change and skips further triggers.
      def create_trigger(table, event, body)
        "CREATE TRIGGER #{quote(trigger_name(table, event))} BEFORE #{event.upcase} ON #{quote(table)} FOR EACH ROW BEGIN #{body}; END"
      end

      def drop_triggers(table)
        EVENTS.map { |event| "DROP TRIGGER IF EXISTS #{quote(trigger_name(table, event))}" }
      end

      # Dropping a table drops its triggers; renaming it changes only `tbl_name`. In both cases the count
      # differs until the triggers are installed again.
      def triggers(tables)
        names = EVENTS.map { |event| "'castellan_version_#{event}_' || tbl_name" }.join(", ")
        "(SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN (#{list(tables)}) AND name IN (#{names})) = " \
          "#{tables.size * EVENTS.size}"
      end

      def definitions(tables)
        "(SELECT group_concat(sql, char(10)) FROM (" \
          "SELECT sql FROM sqlite_master WHERE type = 'table' AND name IN (#{list(tables)}) ORDER BY name))"
      end

      def hidden(tables)
        "SELECT 1 FROM sqlite_temp_master WHERE type IN ('table', 'view') AND name COLLATE NOCASE IN (#{list(tables)})"
      end

      def list(tables) = tables.map { |table| literal(table) }.join(", ")

      def trigger_name(table, event)
        "castellan_version_#{event}_#{table}"
      end

      def quote(name)
        "\"#{name.gsub('"', '""')}\""
      end

      def literal(text)
        "'#{text.gsub("'", "''")}'"
      end
      private_class_method :stamp, :bump, :create_trigger, :drop_triggers, :triggers, :definitions, :hidden, :list, :trigger_name
      private_class_method :quote, :literal
    end
  end
end
