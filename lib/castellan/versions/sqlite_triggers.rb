# frozen_string_literal: true

module Castellan
  module Versions
    # The SQL of exact versions on SQLite: three row triggers a table, one row of a random number a table.
    #
    #   SQLiteTriggers.install("users")          # => statements
    #   SQLiteTriggers.current(%w[users roles])  # => one SELECT of one value, NULL when a trigger is missing
    #
    # SQLite lets one transaction write at a time, so there are no shards. Each changed row draws a new 64-bit number instead
    # of counting: what was rolled back is never given out again, so a transaction that has written may keep what it sees
    # under the number that it drew. Costs a writer one update of a small table a row.
    #
    # Blind spots: `INSERT OR REPLACE` fires the delete trigger only with `PRAGMA recursive_triggers` (its insert trigger
    # fires always, so the table's version moves); tables WITHOUT ROWID, views and virtual tables have no version.
    module SQLiteTriggers
      EVENTS = %w[insert update delete].freeze
      SCHEMA = [
        "CREATE TABLE IF NOT EXISTS castellan_versions (relation TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID"
      ].freeze
      # Columns that are renamed, dropped and added change what a statement reads.
      SCHEMA_VERSION = "(SELECT schema_version FROM pragma_schema_version)"
      private_constant :EVENTS, :SCHEMA, :SCHEMA_VERSION

      module_function

      # @param table [String]
      # @return [Array<String>]
      def install(table)
        SCHEMA + drop_triggers(table) + [stamp(table)] + EVENTS.map { |event| create_trigger(table, event, bump(table)) }
      end

      # @return [Array<String>]
      def uninstall(table)
        [*SCHEMA, *drop_triggers(table), "DELETE FROM castellan_versions WHERE relation = #{literal(table)}"]
      end

      # @param tables [Array<String>]
      # @return [String] a SELECT of one text, NULL when a trigger is missing
      def current(tables)
        "#{tokens(tables)} || '-' || #{SCHEMA_VERSION} WHERE #{triggers(tables)}"
      end

      # @return [String] the same without the triggers and the schema's version, which stay the same while the schema does
      def tokens(tables)
        sums = tables.map { |table| "(SELECT n FROM castellan_versions WHERE relation = #{literal(table)})" }
        "SELECT #{sums.join(" || '.' || ")} || ''"
      end

      # @return [String] a SELECT of the tables that {.install} was called for; those that lost their triggers since are included
      def installed
        "SELECT relation FROM castellan_versions JOIN sqlite_master ON type = 'table' AND name = relation ORDER BY 1"
      end

      # @return [String] a SELECT of one value when what is read is there at all
      def ready
        "SELECT '1' FROM sqlite_master WHERE type = 'table' AND name = 'castellan_versions'"
      end

      def stamp(table)
        "INSERT OR REPLACE INTO castellan_versions (relation, n) VALUES (#{literal(table)}, random())"
      end

      # A schema that was loaded from structure.sql has triggers and no row. Not ON CONFLICT and not INSERT OR REPLACE: inside a
      # trigger the outer statement's conflict clause overrides them.
      def bump(table)
        where = "relation = #{literal(table)}"
        "INSERT INTO castellan_versions (relation, n) SELECT #{literal(table)}, 0 " \
          "WHERE NOT EXISTS (SELECT 1 FROM castellan_versions WHERE #{where}); UPDATE castellan_versions SET n = random() WHERE #{where}"
      end

      def create_trigger(table, event, body)
        "CREATE TRIGGER #{quote(trigger_name(table, event))} AFTER #{event.upcase} ON #{quote(table)} FOR EACH ROW BEGIN #{body}; END"
      end

      # Those of versions before 0.2 included, which counted records as well.
      def drop_triggers(table)
        EVENTS.flat_map { |event| [trigger_name(table, event), "castellan_record_#{event}_#{table}"] }
              .map { |name| "DROP TRIGGER IF EXISTS #{quote(name)}" }
      end

      # A trigger is dropped with its table, renamed with its table in `tbl_name` only, and comes back by an installation alone.
      def triggers(tables)
        names = EVENTS.map { |event| "'castellan_version_#{event}_' || tbl_name" }.join(", ")
        list = tables.map { |table| literal(table) }.join(", ")
        "(SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN (#{list}) AND name IN (#{names})) = " \
          "#{tables.size * EVENTS.size}"
      end

      def trigger_name(table, event)
        "castellan_version_#{event}_#{table}"
      end

      def quote(name)
        "\"#{name.gsub('"', '""')}\""
      end

      def literal(text)
        "'#{text.gsub("'", "''")}'"
      end
      private_class_method :stamp, :bump, :create_trigger, :drop_triggers, :triggers, :trigger_name, :quote, :literal
    end
  end
end
