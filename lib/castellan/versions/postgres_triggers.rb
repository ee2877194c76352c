# frozen_string_literal: true

module Castellan
  module Versions
    # Generates the SQL of exact versions on PostgreSQL 11+: a statement trigger and counters per table.
    #
    #   PostgresTriggers.install("users")          # => statements
    #   PostgresTriggers.current(%w[users roles])  # => one SELECT of one value, NULL if unknown
    #
    # A writer updates a counter in its own transaction, so the change and the counter become visible
    # together.
    #
    # A counter row is locked until its writer commits. Therefore each connection has its own row per table,
    # whose `shard` is the negative process id of the backend: writers never wait for each other and cannot
    # deadlock here. At its first write a connection takes over the rows of connections that have ended. In
    # SERIALIZABLE, where reading a row could cancel another writer, each statement inserts a row with a
    # positive shard, which the next new connection takes over. If `max_prepared_transactions` is set, a
    # prepared transaction keeps its row locked while its connection continues, so each statement replaces an
    # unlocked row.
    #
    # The token begins with the start of the server, see {SERVER}. Counters follow the clock in microseconds, so
    # that neither a restored backup nor a replica that takes over repeats an old token. A new row is greater
    # than those that it replaces. So the number of rows and their sum, both in the token, never occur twice:
    # among as many rows, the sum only grows. The triggers are ENABLE ALWAYS, so they also run under
    # `session_replication_role = replica`. The token contains the transaction ids of the rows in pg_class,
    # pg_attribute and pg_trigger: ALTER TABLE, a rewrite of the table, and disabling and enabling a trigger
    # change it. The token also contains the counters of inheriting tables and partitions, and of parents,
    # because a statement that names a parent changes rows of the table without running its trigger. Each of
    # these tables needs the trigger.
    #
    # `by:` adds four triggers that count changed rows by the OLD and NEW values of these columns, in buckets.
    # Bucket -1 is part of every version by a column, and counts TRUNCATE, statements that change many
    # buckets, and values other than integers and UUIDs. Tables with partitions, parents or inheriting tables
    # use the table's version.
    #
    # The tables and functions are created in the first schema of the search path, next to
    # `schema_migrations`. Every role can read the counters; only the triggers write them. In a transaction
    # that has written, the token is NULL: its changes may be rolled back, so its reads must not be cached.
    module PostgresTriggers
      TRIGGER = "castellan_version"
      BY_TRIGGER = "castellan_version_by_"
      ROWS = { "insert" => "NEW TABLE AS castellan_new", "delete" => "OLD TABLE AS castellan_old",
               "update" => "OLD TABLE AS castellan_old NEW TABLE AS castellan_new", "truncate" => nil }.freeze
      BUCKETS = 1024
      MOST_BUCKETS = 16 # per statement; a statement that changes more counts for all values
      BUCKETED = '\\A(?:0|-?[1-9][0-9]*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\\Z'
      CLOCK = "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8"
      # The server since its start, in each token. A document may be newer than its key, because a transaction committed
      # between the reading of version and rows. Another server, or the same one after a crash, may lack the transaction.
      SERVER = "(pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8"
      # Of the table `c`. A dropped column stays there, and a renamed one changes only its row.
      COLUMNS = "(SELECT sum(xmin::text::bigint) FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0)"
      TABLES = [
        "CREATE TABLE IF NOT EXISTS castellan_versions (relation oid NOT NULL, shard bigint GENERATED ALWAYS AS IDENTITY, " \
        "n bigint NOT NULL, PRIMARY KEY (relation, shard)) WITH (fillfactor = 50)",
        "GRANT SELECT ON castellan_versions TO PUBLIC",
        "CREATE TABLE IF NOT EXISTS castellan_buckets (relation oid NOT NULL, by text NOT NULL, bucket integer NOT NULL, " \
        "shard bigint GENERATED ALWAYS AS IDENTITY, n bigint NOT NULL, PRIMARY KEY (relation, by, bucket, shard)) WITH (fillfactor = 50)",
        "GRANT SELECT ON castellan_buckets TO PUBLIC"
      ].freeze
      # %1$I is the schema. A SECURITY DEFINER function must not resolve names by the caller's search_path.
      # castellan_bump qualifies every name instead of using `SET search_path`, which would cost a writer as
      # much as the counter itself.
      FUNCTIONS = [
        <<~SQL,
          CREATE OR REPLACE FUNCTION castellan_first_bump(written oid) RETURNS void LANGUAGE plpgsql
          SET search_path = pg_catalog, pg_temp AS $f$
          DECLARE
            own boolean := current_setting('max_prepared_transactions') = '0' AND current_setting('transaction_isolation') <> 'serializable';
            free bigint[];
            counted bigint;
          BEGIN
            IF current_setting('transaction_isolation') = 'read committed' THEN -- each statement sees what the one before waited for
              PERFORM pg_stat_clear_snapshot(); -- else a connection that is newer than this transaction's snapshot seems to have ended
              free := ARRAY(SELECT shard FROM %1$I.castellan_versions
                WHERE relation = written AND (shard > 0 OR NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = -shard))
                LIMIT CASE WHEN own THEN 1000 ELSE 1 END FOR UPDATE SKIP LOCKED);
              SELECT max(n) INTO counted FROM %1$I.castellan_versions WHERE relation = written;
              DELETE FROM %1$I.castellan_versions WHERE relation = written AND shard = ANY (free);
            END IF;
            IF own THEN
              INSERT INTO %1$I.castellan_versions (relation, shard, n) OVERRIDING SYSTEM VALUE
              VALUES (written, -pg_backend_pid(), greatest(counted + 1, #{CLOCK}));
            ELSE
              INSERT INTO %1$I.castellan_versions (relation, n) VALUES (written, greatest(counted + 1, #{CLOCK}));
            END IF;
          END $f$
        SQL
        <<~SQL,
          CREATE OR REPLACE FUNCTION castellan_bump() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $f$
          BEGIN
            IF pg_catalog.current_setting('max_prepared_transactions') OPERATOR(pg_catalog.=) '0'
              AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'serializable' THEN
              UPDATE %1$I.castellan_versions SET n = greatest(n OPERATOR(pg_catalog.+) 1, #{CLOCK})
              WHERE relation OPERATOR(pg_catalog.=) TG_RELID AND shard OPERATOR(pg_catalog.=) (0 OPERATOR(pg_catalog.-) pg_catalog.pg_backend_pid());
            END IF;
            IF NOT FOUND THEN
              PERFORM %1$I.castellan_first_bump(TG_RELID);
            END IF;
            IF TG_NARGS OPERATOR(pg_catalog.>) 0 THEN -- see NotifiedVersions; an empty text means all tables
              PERFORM pg_catalog.pg_notify('castellan_versions', CASE WHEN EXISTS (
                SELECT 1 FROM pg_catalog.pg_inherits
                WHERE inhrelid OPERATOR(pg_catalog.=) TG_RELID OR inhparent OPERATOR(pg_catalog.=) TG_RELID
              ) THEN '' ELSE TG_TABLE_NAME END);
            END IF;
            RETURN NULL;
          END $f$
        SQL
        <<~SQL
          -- NULL where a change would not run the trigger (a crash empties an UNLOGGED table), or where rows depend on the role.
          -- Several schemas may share a table; the one that installed last has its trigger, and the counters.
          CREATE OR REPLACE FUNCTION castellan_version(watched oid, child boolean DEFAULT false) RETURNS text
          LANGUAGE plpgsql STABLE AS $f$
          DECLARE
            token text;
            called oid;
            home name;
            has_children boolean;
            has_parents boolean;
            inherits record;
          BEGIN
            SELECT p.oid, n.nspname INTO called, home FROM pg_catalog.pg_trigger t
            JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
            WHERE t.tgrelid = watched AND t.tgname = '#{TRIGGER}';
            IF called IS DISTINCT FROM pg_catalog.to_regprocedure($n$%1$I.castellan_bump()$n$) THEN
              IF child IS NULL OR child OR home IS NULL OR NOT pg_catalog.has_schema_privilege(home, 'USAGE') OR NOT EXISTS (
                SELECT 1 FROM pg_catalog.pg_proc own JOIN pg_catalog.pg_proc other ON other.proowner = own.proowner -- never runs a function of another owner
                WHERE own.oid = pg_catalog.to_regprocedure($n$%1$I.castellan_version(oid, boolean)$n$)
                  AND other.oid = pg_catalog.to_regprocedure(pg_catalog.quote_ident(home) || '.castellan_version(oid, boolean)')
                  AND pg_catalog.has_function_privilege(other.oid, 'EXECUTE')
              ) THEN
                RETURN NULL;
              END IF;
              EXECUTE pg_catalog.format('SELECT %%I.castellan_version($1, NULL)', home) INTO token USING watched; -- NULL: no further
              RETURN token;
            END IF;
            child := coalesce(child, false);
            SELECT c.relhassubclass, EXISTS (SELECT 1 FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid) AND NOT (child AND c.relispartition),
              c.oid || '-' || c.xmin || '-' || #{COLUMNS} || '-' || t.xmin || '-' || (
              SELECT coalesce(count(*) || ':' || sum(n), CASE WHEN child THEN '0' END) FROM %1$I.castellan_versions WHERE relation = watched
            ) INTO has_children, has_parents, token
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND t.tgname = '#{TRIGGER}'
            WHERE c.oid = watched AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relrowsecurity AND t.tgenabled = 'A'
              AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_subscription_rel WHERE srrelid = c.oid);
            IF has_children THEN
              FOR inherits IN SELECT inhrelid, xmin FROM pg_catalog.pg_inherits WHERE inhparent = watched ORDER BY 1 LOOP
                token := token || ',' || inherits.inhrelid || '-' || inherits.xmin || '-' || %1$I.castellan_version(inherits.inhrelid, true);
              END LOOP;
            END IF;
            IF has_parents THEN -- a statement that names a parent runs the parent's trigger alone
              FOR inherits IN
                WITH RECURSIVE above (oid) AS (
                  SELECT inhparent FROM pg_catalog.pg_inherits WHERE inhrelid = watched
                  UNION SELECT inhparent FROM above JOIN pg_catalog.pg_inherits ON inhrelid = above.oid
                ) SELECT above.oid, (
                  SELECT t.xmin::text || '-' || (SELECT count(*) || ':' || coalesce(sum(n), 0) FROM %1$I.castellan_versions WHERE relation = above.oid)
                  FROM pg_catalog.pg_trigger t WHERE t.tgrelid = above.oid AND t.tgname = '#{TRIGGER}' AND t.tgenabled = 'A'
                    AND t.tgfoid = pg_catalog.to_regprocedure($n$%1$I.castellan_bump()$n$)
                    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_subscription_rel WHERE srrelid = above.oid)
                ) AS token FROM above ORDER BY 1
              LOOP
                token := token || '^' || inherits.oid || '-' || inherits.token;
              END LOOP;
            END IF;
            RETURN token;
          END $f$
        SQL
      ].freeze
      BUCKET_FUNCTIONS = [
        <<~SQL,
          CREATE OR REPLACE FUNCTION castellan_bucket(value text) RETURNS integer LANGUAGE sql IMMUTABLE AS $f$
            SELECT CASE WHEN lower(value) ~ '#{BUCKETED}' THEN abs(hashtext(lower(value) COLLATE "C") %% #{BUCKETS}) ELSE -1 END
          $f$
        SQL
        <<~SQL,
          CREATE OR REPLACE FUNCTION castellan_bump_buckets() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
          SET search_path = pg_catalog, pg_temp AS $f$
          DECLARE
            named text;
            texts text[];
            changed integer[];
            one integer;
          BEGIN
            FOREACH named IN ARRAY TG_ARGV LOOP
              changed := ARRAY[-1];
              IF TG_OP <> 'TRUNCATE' AND to_regclass('pg_temp.castellan_old') IS NULL AND to_regclass('pg_temp.castellan_new') IS NULL AND EXISTS (
                SELECT 1 FROM pg_attribute WHERE attrelid = TG_RELID AND attname = named AND NOT attisdropped
              ) THEN -- by name, because to_jsonb of a row fails for values that JSON cannot have
                -- concat calls no cast to text: the owner of a column's type could write one that would run with this function's rights
                EXECUTE format('SELECT ARRAY(SELECT DISTINCT concat(%%1$I) COLLATE "C" FROM (' || CASE TG_OP
                  WHEN 'INSERT' THEN 'SELECT %%1$I FROM castellan_new'
                  WHEN 'DELETE' THEN 'SELECT %%1$I FROM castellan_old'
                  ELSE 'SELECT %%1$I FROM castellan_old UNION ALL SELECT %%1$I FROM castellan_new'
                END || ') AS rows LIMIT #{MOST_BUCKETS + 1})', named) INTO texts;
                CONTINUE WHEN texts = '{}';
                IF cardinality(texts) <= #{MOST_BUCKETS} THEN
                  changed := ARRAY(SELECT DISTINCT %1$I.castellan_bucket(value) FROM unnest(texts) AS value);
                END IF;
              END IF;
              IF (CASE -- SERIALIZABLE cancels writers of which each reads what another one writes
                WHEN -1 = ANY (changed) THEN true
                WHEN current_setting('transaction_isolation') = 'serializable' THEN false
                ELSE NOT EXISTS (SELECT 1 FROM %1$I.castellan_buckets WHERE relation = TG_RELID AND by = named AND bucket = -1)
              END) THEN
                changed := ARRAY[-1];
              END IF;
              FOREACH one IN ARRAY changed LOOP
                IF current_setting('transaction_isolation') = 'read committed' THEN
                  UPDATE %1$I.castellan_buckets SET n = greatest(n + 1, #{CLOCK})
                  WHERE relation = TG_RELID AND by = named AND bucket = one AND shard = (
                    SELECT shard FROM %1$I.castellan_buckets
                    WHERE relation = TG_RELID AND by = named AND bucket = one LIMIT 1 FOR UPDATE SKIP LOCKED
                  );
                  CONTINUE WHEN FOUND;
                END IF;
                INSERT INTO %1$I.castellan_buckets (relation, by, bucket, n) VALUES (TG_RELID, named, one, #{CLOCK});
              END LOOP;
            END LOOP;
            RETURN NULL;
          END $f$
        SQL
        <<~SQL
          -- The version of the rows with this value, or that of the table.
          CREATE OR REPLACE FUNCTION castellan_version_by(watched oid, named text, value text) RETURNS text
          LANGUAGE plpgsql STABLE AS $f$
          DECLARE token text;
          BEGIN
            SELECT c.xmin::text || '-' || #{COLUMNS} || '=' || (
              SELECT string_agg(xmin::text, '-' ORDER BY tgname) FROM pg_catalog.pg_trigger
              WHERE tgrelid = watched AND starts_with(tgname::text, '#{BY_TRIGGER}') AND tgenabled = 'A'
                AND tgfoid = pg_catalog.to_regprocedure($n$%1$I.castellan_bump_buckets()$n$)
              HAVING count(*) = #{ROWS.size}
            ) || '=' || (
              SELECT sum(n) FROM %1$I.castellan_buckets WHERE relation = watched AND by = named
              AND bucket IN (-1, %1$I.castellan_bucket(value)) HAVING bool_or(bucket = -1)
            ) INTO token FROM pg_catalog.pg_class c
            WHERE c.oid = watched AND c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity AND NOT c.relhassubclass
              AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid)
              AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_subscription_rel WHERE srrelid = c.oid);
            RETURN coalesce(token, %1$I.castellan_version(watched));
          END $f$
        SQL
      ].freeze
      private_constant :BY_TRIGGER, :ROWS, :BUCKETS, :MOST_BUCKETS, :BUCKETED, :CLOCK, :SERVER, :COLUMNS, :TABLES, :FUNCTIONS,
                       :BUCKET_FUNCTIONS

      module_function

      # @param table [String] with its partitions and inheriting tables
      # @param notify [Boolean] whether a write also sends a notification, see {NotifiedVersions}
      # @param by [Array<String>] columns whose values have versions of their own
      # @return [Array<String>] SQL statements
      def install(table, notify: false, by: [])
        forget = %w[castellan_versions castellan_buckets].map do |counters|
          "DELETE FROM #{counters} WHERE NOT EXISTS (SELECT 1 FROM pg_class WHERE oid = relation)"
        end
        [*TABLES, *(FUNCTIONS + BUCKET_FUNCTIONS).map { |sql| create_function(sql) }, *forget,
         install_family(table, notify), install_by(table, by)]
      end

      # @param table [String]
      # @return [Array<String>] SQL statements
      def uninstall(table)
        [*TABLES, each_of_family(table, "EXECUTE format('DROP TRIGGER IF EXISTS #{TRIGGER} ON %s', watched);"), install_by(table, []),
         "DELETE FROM castellan_versions WHERE relation = #{regclass(table)}"]
      end

      # @param counters [Array<String>] see {Dependency#counter}; each column adds a parameter for its value
      # @return [String] SELECT of one text; NULL if a version is unknown
      def current(counters)
        parameter = 0
        versions = counters.map do |counter|
          table, column = counter.split
          next "castellan_version(#{relation(table)})" unless column

          "castellan_version_by(#{relation(table)}, #{literal(column)}, $#{parameter += 1}::text)"
        end
        versions = versions.join(" || '.' || ")
        versions = "coalesce((#{plain(counters)}), #{versions})" if parameter.zero?
        "SELECT #{SERVER} || '.' || #{versions} WHERE txid_current_if_assigned() IS NULL"
      end

      # @param counters [Array<String>] see {.current}
      # @return [String] SQL of an array of the ids of their tables
      def relations(counters)
        "ARRAY[#{counters.map { |counter| relation(counter.split.first) }.uniq.join(", ")}]::oid[]"
      end

      # @return [nil] PostgreSQL needs no separate statement
      def tokens(_tables) = nil

      # @param tables [Array<String>]
      # @return [String] SELECT of one text: 'true' if the triggers of all tables and partitions notify, and none
      #   has its name in the schema of another role (`"$user"` in the search path), which `SET ROLE` would choose
      def notifies(tables)
        family = "WITH RECURSIVE family (oid) AS (SELECT oid FROM unnest(ARRAY[#{tables.map { |table|
          relation(table)
        }.join(", ")}]::oid[]) " \
                 "AS named (oid) UNION SELECT beside.oid FROM family JOIN LATERAL (" \
                 "SELECT inhrelid AS oid FROM pg_catalog.pg_inherits WHERE inhparent = family.oid " \
                 "UNION ALL SELECT inhparent FROM pg_catalog.pg_inherits WHERE inhrelid = family.oid) AS beside ON true)"
        "#{family} SELECT (coalesce(bool_and(t.tgnargs > 0), false) AND NOT EXISTS (#{of_roles}))::text " \
          "FROM family LEFT JOIN pg_catalog.pg_trigger t ON t.tgrelid = family.oid AND t.tgname = '#{TRIGGER}'"
      end

      def of_roles
        "SELECT 1 FROM family JOIN pg_catalog.pg_class own USING (oid) JOIN pg_catalog.pg_class other USING (relname) " \
          "JOIN pg_catalog.pg_namespace n ON n.oid = other.relnamespace JOIN pg_catalog.pg_roles ON rolname = nspname " \
          "WHERE other.oid <> own.oid"
      end

      # @return [String] SELECT of one value, '1' if the functions are installed and may be called
      def ready
        "SELECT '1' WHERE has_function_privilege(to_regprocedure('castellan_version(oid, boolean)'), 'EXECUTE')"
      end

      # @return [String] SELECT of the visible tables with `by:`, and their columns joined by commas
      def columns
        "SELECT c.relname, string_agg(DISTINCT b.by, ',') FROM castellan_buckets b JOIN pg_catalog.pg_class c ON c.oid = b.relation " \
          "WHERE b.bucket = -1 AND pg_catalog.pg_table_is_visible(c.oid) GROUP BY 1"
      end

      # @param notify [Boolean] those that notify, or those that do not
      # @return [String] SELECT of the tables in the search path for which {.install} was called
      def installed(notify: false)
        "SELECT c.relname FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid " \
          "WHERE t.tgname = '#{TRIGGER}' AND t.tgnargs #{notify ? ">" : "="} 0 AND pg_catalog.pg_table_is_visible(c.oid) AND NOT EXISTS (" \
          "SELECT 1 FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_trigger p ON p.tgrelid = i.inhparent AND p.tgname = '#{TRIGGER}' " \
          "WHERE i.inhrelid = c.oid) ORDER BY 1"
      end

      # @return [String] statement that restores ENABLE ALWAYS after `ENABLE TRIGGER ALL`
      def enable_always
        "DO $do$ DECLARE watched record; BEGIN " \
          "FOR watched IN SELECT tgrelid::regclass AS name, tgname FROM pg_catalog.pg_trigger " \
          "WHERE starts_with(tgname::text, '#{TRIGGER}') AND tgenabled = 'O' LOOP " \
          "EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', watched.name, watched.tgname); END LOOP; END $do$"
      end

      def create_function(sql)
        "DO $do$ BEGIN EXECUTE format($sql$#{sql}$sql$, current_schema()); END $do$"
      end

      # The lock waits for transactions that have written without the trigger.
      def install_family(table, notify)
        each_of_family(table, <<~SQL, <<~AFTERWARDS)
          EXECUTE format('DROP TRIGGER IF EXISTS #{TRIGGER} ON %1$s; LOCK TABLE %1$s IN SHARE ROW EXCLUSIVE MODE', watched);
          DELETE FROM castellan_versions WHERE relation = watched;
          INSERT INTO castellan_versions (relation, n) VALUES (watched, #{CLOCK});
          EXECUTE format('CREATE TRIGGER #{TRIGGER} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON %1$s ' ||
            'FOR EACH STATEMENT EXECUTE FUNCTION castellan_bump(#{"''notify''" if notify}); ALTER TABLE %1$s ENABLE ALWAYS TRIGGER #{TRIGGER}', watched);
        SQL
          IF NOT FOUND THEN
            RAISE EXCEPTION 'castellan: % is no table but a view or foreign table, which change without a trigger', #{literal(table)};
          END IF;
        AFTERWARDS
      end

      # PERFORM raises for a column that does not exist. The lock of {install_family} is still held.
      def install_by(table, columns)
        create = ROWS.map do |event, rows|
          "CREATE TRIGGER #{BY_TRIGGER}#{event} AFTER #{event} ON #{quote(table)} #{"REFERENCING #{rows} " if rows}FOR EACH STATEMENT " \
            "EXECUTE FUNCTION castellan_bump_buckets(#{columns.map { |column| literal(column) }.join(", ")}); " \
            "ALTER TABLE #{quote(table)} ENABLE ALWAYS TRIGGER #{BY_TRIGGER}#{event};"
        end
        drop = ROWS.keys.map { |event| "DROP TRIGGER IF EXISTS #{BY_TRIGGER}#{event} ON #{quote(table)};" }
        count = columns.map do |column|
          "PERFORM #{quote(column)} FROM #{quote(table)} LIMIT 0; " \
            "INSERT INTO castellan_buckets (relation, by, bucket, n) VALUES (#{regclass(table)}, #{literal(column)}, -1, #{CLOCK});"
        end
        create.clear if columns.empty?
        "DO $do$ BEGIN #{[*drop, "DELETE FROM castellan_buckets WHERE relation = #{regclass(table)};", *count, *create].join(" ")} END $do$"
      end

      def each_of_family(table, body, afterwards = nil)
        <<~SQL
          DO $do$
          DECLARE watched regclass;
          BEGIN
            FOR watched IN
              WITH RECURSIVE family (oid) AS (
                SELECT #{regclass(table)}::oid UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = family.oid
              ) SELECT pg_class.oid FROM family JOIN pg_class USING (oid) WHERE relkind IN ('r', 'p') ORDER BY 1
            LOOP
              #{body}
            END LOOP;
            #{afterwards}
          END $do$
        SQL
      end

      # Reads the versions of several tables at once, in about half the time of the functions. One number of rows
      # and one sum are enough.
      # @return [String] SELECT of one text; NULL or no row if a table needs {FUNCTIONS}: with partitions or
      #   inheritance, with the trigger of another schema, if a subscription exists, or if a version is unknown
      def plain(tables)
        oids = relations(tables)
        <<~SQL
          SELECT (
            SELECT string_agg(c.oid || '-' || c.xmin || '-' || #{COLUMNS} || '-' || t.xmin, '.' ORDER BY c.oid)
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND t.tgname = '#{TRIGGER}'
            WHERE c.oid = ANY (#{oids}) AND c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity AND NOT c.relhassubclass
              AND t.tgenabled = 'A' AND pg_catalog.pg_function_is_visible(t.tgfoid)
            HAVING count(*) = #{tables.size}
          ) || '-' || (
            SELECT count(*) || ':' || sum(n) FROM castellan_versions WHERE relation = ANY (#{oids})
            HAVING count(DISTINCT relation) = #{tables.size}
          )
          WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_subscription_rel)
            AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits WHERE inhrelid = ANY (#{oids}))
        SQL
      end

      # Resolved on each execution, because the search path may change and a table may be recreated.
      def relation(table)
        "to_regclass(#{literal(quote(table))})"
      end

      def regclass(table)
        "#{literal(quote(table))}::regclass"
      end

      def quote(table)
        table.split(".").map { |part| "\"#{part.gsub('"', '""')}\"" }.join(".")
      end

      def literal(text)
        "'#{text.gsub("'", "''")}'"
      end
      private_class_method :of_roles, :create_function, :install_family, :install_by, :each_of_family, :plain, :relation, :regclass
      private_class_method :quote, :literal
    end
  end
end
