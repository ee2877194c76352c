# frozen_string_literal: true

module Castellan
  class Purge
    # Generates the SQL of triggers that note changed rows in `castellan_purges`.
    #
    #   Triggers.for(:postgres).install("posts", [["id"]], %w[id title])   # => statements
    #
    # Each changed row adds one note of {Tags}: "posts~ posts.title posts/7", with "posts*" if the columns of
    # the ids are unknown. TRUNCATE on PostgreSQL adds "posts*"; DELETE without WHERE on SQLite runs the
    # triggers of each row. Rows are compared as bytes, because some types have no equality, or treat
    # different texts as equal.
    module Triggers
      NAME = "castellan_purge"
      CHANNEL = "castellan_purges"

      # @param dialect [Symbol] :postgres or :sqlite
      # @return [Module]
      def self.for(dialect)
        dialect == :postgres ? Postgres : SQLite
      end

      module_function

      def quote(name)
        name.split(".").map { |part| %("#{part.gsub('"', '""')}") }.join(".")
      end

      def literal(text)
        "'#{text.gsub("'", "''")}'"
      end

      # Generates a trigger for each table; its arguments are the table and the columns of each id.
      module Postgres
        SCHEMA = [
          "CREATE TABLE IF NOT EXISTS castellan_purges (id bigserial PRIMARY KEY, tags text NOT NULL)",
          "CREATE TABLE IF NOT EXISTS castellan_urls (tag text NOT NULL, url text NOT NULL, fields text NOT NULL, " \
          "at bigint NOT NULL, PRIMARY KEY (tag, url, fields))",
          <<~SQL,
            CREATE OR REPLACE FUNCTION castellan_add_purge(tags text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = pg_catalog, pg_temp AS $f$
            BEGIN
              INSERT INTO %1$I.castellan_purges (tags) VALUES (castellan_add_purge.tags);
              PERFORM pg_notify('#{CHANNEL}', '');
            END $f$
          SQL
          <<~SQL
            -- With the writer's rights: to_jsonb calls casts to json, and the owner of a column's type could write one.
            CREATE OR REPLACE FUNCTION castellan_note_purge() RETURNS trigger LANGUAGE plpgsql
            SET search_path = pg_catalog, pg_temp AS $f$
            DECLARE
              name text := TG_ARGV[0];
              was jsonb;
              is_now jsonb;
              tags text;
            BEGIN
              IF TG_OP = 'TRUNCATE' THEN
                tags := name || '*';
              ELSE
                tags := name || '~' || CASE WHEN TG_NARGS = 1 THEN ' ' || name || '*' ELSE '' END;
                BEGIN
                  IF TG_OP <> 'INSERT' THEN was := to_jsonb(OLD); END IF;
                  IF TG_OP <> 'DELETE' THEN is_now := to_jsonb(NEW); END IF;
                EXCEPTION WHEN data_exception THEN -- json with a NUL or a number that jsonb does not take
                  was := NULL;
                  is_now := NULL;
                  tags := name || '~ ' || name || '*';
                END;
                IF was IS NULL AND is_now IS NULL THEN
                  NULL;
                ELSIF TG_OP = 'UPDATE' THEN
                  IF OLD *= NEW THEN RETURN NULL; END IF;
                  SELECT tags || coalesce(string_agg(' ' || name || '.' || replace(key, ' ', '_'), ''), '') INTO tags
                    FROM jsonb_each(is_now) WHERE was->key IS DISTINCT FROM value;
                ELSE
                  tags := tags || ' ' || name || '+';
                END IF;
                SELECT tags || coalesce(string_agg(DISTINCT ' ' || name || '/' || CASE WHEN one ~ '^[A-Za-z0-9_.:-]+$' THEN one ELSE '?' END, ''), '')
                  INTO tags
                  FROM (SELECT (SELECT string_agg(version->>part, '_' ORDER BY place) FROM unnest(string_to_array(columns, ',')) WITH ORDINALITY AS p(part, place)) AS one
                        FROM unnest(TG_ARGV[1:]) AS columns, unnest(ARRAY[was, is_now]) AS version WHERE version IS NOT NULL) AS ids;
              END IF;
              PERFORM %1$I.castellan_add_purge(tags);
              RETURN NULL;
            END $f$
          SQL
        ].freeze
        private_constant :SCHEMA

        module_function

        # @param table [String]
        # @param ids [Array<Array<String>>] the columns of each id
        # @return [Array<String>] SQL statements
        def install(table, ids, _columns)
          arguments = [Tags.word(table), *ids.map { |columns| columns.join(",") }].map { |text| Triggers.literal(text) }.join(", ")
          [*SCHEMA.map { |sql| sql.include?("%1$I") ? "DO $do$ BEGIN EXECUTE format($sql$#{sql}$sql$, current_schema()); END $do$" : sql },
           *uninstall(table),
           trigger(NAME, "INSERT OR UPDATE OR DELETE", table, "ROW", arguments),
           trigger("#{NAME}_all", "TRUNCATE", table, "STATEMENT", arguments)]
        end

        # @return [Array<String>] SQL statements
        def uninstall(table)
          [NAME, "#{NAME}_all"].map { |name| "DROP TRIGGER IF EXISTS #{name} ON #{Triggers.quote(table)}" }
        end

        # Excludes parents of inheriting tables: a change of the child does not run the parent's trigger.
        # @return [String] a SELECT that lists the tables with the trigger
        def installed
          "SELECT c.relname, n.nspname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid " \
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE t.tgname = '#{NAME}' AND t.tgenabled = 'A' AND NOT EXISTS " \
            "(SELECT 1 FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid WHERE i.inhparent = c.oid AND NOT k.relispartition)"
        end

        # ENABLE ALWAYS: the trigger also runs with `session_replication_role = replica`.
        def trigger(name, events, table, each, arguments)
          "CREATE TRIGGER #{name} AFTER #{events} ON #{Triggers.quote(table)} FOR EACH #{each} " \
            "EXECUTE FUNCTION castellan_note_purge(#{arguments}); ALTER TABLE #{Triggers.quote(table)} ENABLE ALWAYS TRIGGER #{name}"
        end
        private_class_method :trigger
      end

      # Generates three triggers for each table. They list its columns: reinstall them after adding one.
      module SQLite
        EVENTS = %w[insert update delete].freeze
        SCHEMA = [
          "CREATE TABLE IF NOT EXISTS castellan_purges (id INTEGER PRIMARY KEY AUTOINCREMENT, tags TEXT NOT NULL)",
          "CREATE TABLE IF NOT EXISTS castellan_urls (tag TEXT NOT NULL, url TEXT NOT NULL, fields TEXT NOT NULL, " \
          "at INTEGER NOT NULL, PRIMARY KEY (tag, url, fields)) WITHOUT ROWID"
        ].freeze
        private_constant :EVENTS, :SCHEMA

        module_function

        # @param table [String]
        # @param ids [Array<Array<String>>]
        # @param columns [Array<String>] all columns of the table
        # @return [Array<String>] SQL statements
        def install(table, ids, columns)
          [*SCHEMA, *uninstall(table),
           trigger(table, "insert", text(table, "+"), ids_of(table, ids, "NEW")),
           trigger(table, "update", changed(table, columns), ids_of(table, ids, "OLD"), ids_of(table, ids, "NEW"),
                   only: columns.map { |column| differs(column) }.join(" OR ")),
           trigger(table, "delete", text(table, "+"), ids_of(table, ids, "OLD"))]
        end

        # @return [Array<String>] SQL statements
        def uninstall(table)
          EVENTS.map { |event| "DROP TRIGGER IF EXISTS #{Triggers.quote("#{NAME}_#{event}_#{table}")}" }
        end

        # @return [String] a SELECT that lists the tables with the triggers. Excludes those with a column that was added later
        def installed
          "SELECT tbl_name FROM sqlite_master AS t WHERE type = 'trigger' AND name = '#{NAME}_update_' || tbl_name AND NOT EXISTS " \
            "(SELECT 1 FROM pragma_table_xinfo(t.tbl_name) AS c WHERE c.hidden <> 1 AND " \
            "instr(t.sql, 'OLD.\"' || replace(c.name, '\"', '\"\"') || '\" ') = 0)"
        end

        def trigger(table, event, *parts, only: nil)
          tags = [Triggers.literal("#{Tags.word(table)}~"), *parts.flatten].join(" || ")
          name = Triggers.quote("#{NAME}_#{event}_#{table}")
          "CREATE TRIGGER #{name} AFTER #{event.upcase} ON #{Triggers.quote(table)} FOR EACH ROW #{"WHEN #{only}" if only} BEGIN " \
            "INSERT INTO castellan_purges (tags) VALUES (#{tags}); END"
        end

        def text(table, sign)
          Triggers.literal(" #{Tags.word("#{table}#{sign}")}")
        end

        def changed(table, columns)
          columns.map do |column|
            "CASE WHEN #{differs(column)} THEN #{text(table, ".#{column}")} ELSE '' END"
          end
        end

        def differs(column)
          name = Triggers.quote(column)
          "OLD.#{name} COLLATE BINARY IS NOT NEW.#{name}"
        end

        def ids_of(table, ids, row)
          return [text(table, "*")] if ids.empty?

          ids.map do |columns|
            id = columns.map { |column| "#{row}.#{Triggers.quote(column)}" }.join(" || '_' || ")
            usual = "coalesce(#{id}, '') NOT GLOB '*[^A-Za-z0-9_.:-]*' AND coalesce(#{id}, '') <> ''"
            "#{text(table, "/")} || CASE WHEN #{usual} THEN #{id} ELSE '?' END"
          end
        end
        private_class_method :trigger, :text, :changed, :differs, :ids_of
      end
    end
  end
end
