# frozen_string_literal: true

module Castellan
  module Versions
    # The SQL of exact versions on PostgreSQL (11 and later): one statement trigger a table, counters in shards.
    #
    #   PostgresTriggers.install("users", records: "id") # => statements
    #   PostgresTriggers.current(%w[users roles])        # => one SELECT of one value, NULL when nothing exact can be said
    #
    # Why it is exact: a writer changes a counter in the transaction of its change, so both are committed at one instant, and
    # whoever sees the one sees the other. A writer that took its counter early and commits late changes nothing that others
    # see until then. Each committed change makes the sum of a table's shards larger.
    #
    # Why shards: a counter row is locked until its writer commits. A writer takes any shard that nobody holds (`FOR UPDATE
    # SKIP LOCKED`) and makes a new one when all are held, so writers never wait for one another and cannot deadlock here. In
    # REPEATABLE READ and SERIALIZABLE a shard that changed since the snapshot could not be updated, so there each statement
    # makes a new one; installing again folds them together.
    #
    # Counters follow the clock in microseconds, so that a restored backup does not give out a token that was used before.
    # Every role of the database may read the counters, and with them the ids of records that were changed, so that an
    # application can read its versions under another role than the one that installed them; only the triggers write them.
    # A transaction that has itself written gets NULL: what it sees may yet be rolled back, and must not be kept.
    module PostgresTriggers
      TRIGGER = "castellan_version"
      RECORDS_TRIGGER = "castellan_record_version"
      CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
      SCHEMA = [
        "CREATE SCHEMA IF NOT EXISTS castellan",
        "CREATE TABLE IF NOT EXISTS castellan.versions (relation oid NOT NULL, shard bigint GENERATED ALWAYS AS IDENTITY, " \
        "n bigint NOT NULL, PRIMARY KEY (relation, shard)) WITH (fillfactor = 50)",
        "CREATE TABLE IF NOT EXISTS castellan.records (relation oid NOT NULL, id text NOT NULL, n bigint NOT NULL, " \
        "PRIMARY KEY (relation, id)) WITH (fillfactor = 80)",
        "CREATE TABLE IF NOT EXISTS castellan.record_tables (relation oid PRIMARY KEY, n bigint NOT NULL)",
        "GRANT USAGE ON SCHEMA castellan TO PUBLIC",
        "GRANT SELECT ON castellan.versions, castellan.records, castellan.record_tables TO PUBLIC",
        <<~SQL,
          CREATE OR REPLACE FUNCTION castellan.bump() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
          SET search_path = pg_catalog, pg_temp AS $$
          DECLARE free bigint;
          BEGIN
            IF current_setting('transaction_isolation') = 'read committed' THEN -- two statements: the second one sees what the first waited for
              SELECT shard INTO free FROM castellan.versions WHERE relation = TG_RELID LIMIT 1 FOR UPDATE SKIP LOCKED;
            END IF;
            IF free IS NULL THEN
              INSERT INTO castellan.versions (relation, n) VALUES (TG_RELID, #{CLOCK});
            ELSE
              UPDATE castellan.versions SET n = greatest(n + 1, #{CLOCK}) WHERE relation = TG_RELID AND shard = free;
            END IF;
            IF TG_OP = 'TRUNCATE' THEN
              UPDATE castellan.record_tables SET n = greatest(n + 1, #{CLOCK}) WHERE relation = TG_RELID;
              DELETE FROM castellan.records WHERE relation = TG_RELID;
            END IF;
            RETURN NULL;
          END $$
        SQL
        <<~SQL
          CREATE OR REPLACE FUNCTION castellan.bump_record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
          SET search_path = pg_catalog, pg_temp AS $$
          BEGIN
            IF TG_OP <> 'INSERT' THEN
              INSERT INTO castellan.records AS r VALUES (TG_RELID, to_jsonb(OLD) ->> TG_ARGV[0], #{CLOCK})
                ON CONFLICT (relation, id) DO UPDATE SET n = greatest(r.n + 1, excluded.n);
            END IF;
            IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND to_jsonb(OLD) -> TG_ARGV[0] <> to_jsonb(NEW) -> TG_ARGV[0]) THEN
              INSERT INTO castellan.records AS r VALUES (TG_RELID, to_jsonb(NEW) ->> TG_ARGV[0], #{CLOCK})
                ON CONFLICT (relation, id) DO UPDATE SET n = greatest(r.n + 1, excluded.n);
            END IF;
            RETURN NULL;
          END $$
        SQL
      ].freeze
      private_constant :CLOCK, :SCHEMA

      module_function

      # @param table [String]
      # @param records [String, nil] the primary key, for counters of single records
      # @return [Array<String>]
      def install(table, records: nil)
        relation = "#{literal(quote(table))}::regclass"
        SCHEMA + drop_triggers(table) + [
          "LOCK TABLE #{quote(table)} IN SHARE ROW EXCLUSIVE MODE", # waits for those who have written without the trigger
          "DELETE FROM castellan.versions WHERE relation = #{relation}",
          "INSERT INTO castellan.versions (relation, n) VALUES (#{relation}, #{CLOCK})",
          "CREATE TRIGGER #{TRIGGER} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON #{quote(table)} " \
          "FOR EACH STATEMENT EXECUTE FUNCTION castellan.bump()"
        ] + (records ? install_records(table, relation, records) : [])
      end

      def install_records(table, relation, key)
        [
          "DELETE FROM castellan.records WHERE relation = #{relation}",
          "INSERT INTO castellan.record_tables (relation, n) VALUES (#{relation}, #{CLOCK}) " \
          "ON CONFLICT (relation) DO UPDATE SET n = greatest(record_tables.n + 1, excluded.n)",
          "CREATE TRIGGER #{RECORDS_TRIGGER} AFTER INSERT OR UPDATE OR DELETE ON #{quote(table)} " \
          "FOR EACH ROW EXECUTE FUNCTION castellan.bump_record(#{literal(key)})"
        ]
      end

      # @return [Array<String>]
      def uninstall(table)
        relation = "#{literal(quote(table))}::regclass"
        SCHEMA + drop_triggers(table) +
          %w[versions records record_tables].map { |name| "DELETE FROM castellan.#{name} WHERE relation = #{relation}" }
      end

      def drop_triggers(table)
        [TRIGGER, RECORDS_TRIGGER].map { |name| "DROP TRIGGER IF EXISTS #{name} ON #{quote(table)}" }
      end

      # @param tables [Array<String>]
      # @return [String] a SELECT of one text, without parameters: the state of the triggers and the sums, NULL when unsure
      def current(tables)
        sums = tables.map do |table|
          relation = relation(table)
          "(SELECT sum(n)::text FROM castellan.versions WHERE relation = #{relation} AND #{trigger(relation, TRIGGER)})"
        end
        "SELECT CASE WHEN txid_current_if_assigned() IS NULL THEN #{sums.join(" || '.' || ")} END"
      end

      # @return [nil] nothing cheaper says the same
      def tokens(_tables) = nil

      # @return [String] a SELECT of id and token with one parameter, the ids as an array of text; no rows when unsure
      def record_versions(table)
        relation = relation(table)
        "SELECT i.id, coalesce(r.n, b.n)::text FROM castellan.record_tables b CROSS JOIN unnest($1::text[]) AS i (id) " \
          "LEFT JOIN castellan.records r ON r.relation = b.relation AND r.id = i.id " \
          "WHERE b.relation = #{relation} AND txid_current_if_assigned() IS NULL " \
          "AND #{trigger(relation, TRIGGER)} AND #{trigger(relation, RECORDS_TRIGGER)}"
      end

      # Looked at in each statement, because nothing else would notice a trigger that is gone (schema.rb does not dump them).
      def trigger(relation, name)
        "EXISTS (SELECT 1 FROM pg_catalog.pg_trigger WHERE tgrelid = #{relation} AND tgname = '#{name}' AND tgenabled IN ('O', 'A'))"
      end

      # @return [String] a SELECT of one value, '1' when what is read is there at all
      def ready
        "SELECT '1' WHERE to_regclass('castellan.versions') IS NOT NULL AND to_regclass('castellan.record_tables') IS NOT NULL"
      end

      # Found again at each execution, so that the search path and a table that was made anew count.
      def relation(table)
        "to_regclass(#{literal(quote(table))})"
      end

      def quote(table)
        table.split(".").map { |part| "\"#{part.gsub('"', '""')}\"" }.join(".")
      end

      def literal(text)
        "'#{text.gsub("'", "''")}'"
      end
      private_class_method :install_records, :drop_triggers, :trigger, :relation, :quote, :literal
    end
  end
end
