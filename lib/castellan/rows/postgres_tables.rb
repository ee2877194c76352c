# frozen_string_literal: true

module Castellan
  module Rows
    # Finds the tables that a statement reads, with PostgreSQL's catalogs, and checks them with EXPLAIN.
    #
    #   PostgresTables.new(session).call(sql, SqlWords.new(sql))   # => ["billing.invoices", "users"], or the reason
    #
    # Every identifier that is also a table's name counts: a table too many only invalidates a document too
    # often. EXPLAIN alone is not sufficient: it omits what the planner optimizes away, and shows partitions
    # instead of their table.
    class PostgresTables
      RELATIONS = <<~SQL
        SELECT DISTINCT c.oid::text, c.relkind::text, c.relrowsecurity::text, pg_table_is_visible(c.oid)::text, n.nspname, c.relname
        FROM unnest($1::text[]) AS name JOIN pg_catalog.pg_class c ON c.oid = to_regclass(name)
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind NOT IN ('i', 'I', 'c', 't')
      SQL
      FUNCTIONS = <<~SQL
        SELECT proname FROM pg_catalog.pg_proc WHERE proname = ANY($1::text[])
        AND (provolatile <> 'i' OR pronamespace <> 'pg_catalog'::regnamespace) LIMIT 1
      SQL
      # A function of one row can be called like a column: users.full_name.
      ROW_FUNCTIONS = <<~SQL
        SELECT proname FROM pg_catalog.pg_proc WHERE proname = ANY($1::text[]) AND pronargs = 1
        AND EXISTS (SELECT 1 FROM pg_catalog.pg_type WHERE oid = proargtypes[0] AND typtype = 'c') LIMIT 1
      SQL
      # EXPLAIN does not name the function of an operator. Those of extensions (citext's =) are immutable.
      OPERATORS = <<~SQL
        SELECT oprname FROM pg_catalog.pg_operator JOIN pg_catalog.pg_proc ON pg_proc.oid = oprcode
        WHERE oprnamespace <> 'pg_catalog'::regnamespace AND provolatile <> 'i'
        AND EXISTS (SELECT 1 FROM unnest($1::text[]) AS run WHERE position(oprname IN run) > 0) LIMIT 1
      SQL
      DESCENDANTS = <<~SQL
        WITH RECURSIVE family (oid) AS (
          SELECT id::oid FROM unnest($1::text[]) AS id UNION SELECT inhrelid FROM family JOIN pg_catalog.pg_inherits ON inhparent = family.oid
        ) SELECT n.nspname || '.' || c.relname FROM family JOIN pg_catalog.pg_class c USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace
      SQL
      CALL = /([\p{L}_][\p{L}\p{N}_$]*)"?\(/
      SYMBOLS = %r{[-+*/<>=~!@#%^&|`?]+}
      private_constant :RELATIONS, :FUNCTIONS, :ROW_FUNCTIONS, :OPERATORS, :SYMBOLS, :DESCENDANTS, :CALL

      # @param session [Object] see {Session}
      def initialize(session)
        @session = session
      end

      # @param sql [String]
      # @param words [SqlWords]
      # @return [Array<String>, String] the tables, or the reason why they are not certain
      def call(sql, words)
        relations = rows(RELATIONS, words.names.map { |name| quoted(name) })
        refused(relations) || explained(sql, words, relations) || relations.map { |relation| table(relation) }.uniq
      end

      private

      def refused(relations)
        relations.each do |_oid, kind, guarded, _visible, _schema, name|
          return "#{name} is no table" unless %w[r p].include?(kind)
          return "the rows of #{name} depend on the role (row-level security)" if guarded.start_with?("t")
        end
        nil
      end

      def explained(sql, words, relations)
        read, texts = plan(sql)
        called = first(FUNCTIONS, words.calls | texts.flat_map { |text| text.scan(CALL).flatten }) ||
                 first(ROW_FUNCTIONS, words.names.map(&:last)) ||
                 rows(OPERATORS, [sql, *texts].flat_map { |text| text.scan(SYMBOLS) }.uniq).flatten.first
        return "it calls #{called}" if called

        unseen = read - rows(DESCENDANTS, relations.map(&:first)).flatten
        "it reads #{unseen.first}, which it does not name" if unseen.any?
      end

      # @return [Array(Array<String>, Array<String>)] the tables in the plan, and all strings of the plan
      def plan(sql)
        read = []
        texts = []
        visit = lambda do |part|
          case part
          when Hash
            read << "#{part["Schema"]}.#{part["Relation Name"]}" if part.key?("Relation Name")
            part.each_value(&visit)
          when Array then part.each(&visit)
          when String then texts << part
          end
        end
        json = in_savepoint { rows("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) #{sql}").flatten.first }
        visit.call(JSON.parse(json))
        [read.uniq, texts]
      end

      # Keeps an error of EXPLAIN from aborting the caller's transaction.
      def in_savepoint
        return yield unless @session.raw(&:transaction_status) == PG::PQTRANS_INTRANS

        begin
          rows("SAVEPOINT castellan_explain")
          yield.tap { rows("RELEASE SAVEPOINT castellan_explain") }
        rescue StandardError
          rows("ROLLBACK TO SAVEPOINT castellan_explain")
          raise
        end
      end

      def first(sql, names)
        rows(sql, names).flatten.first if names.any?
      end

      def rows(sql, values = nil)
        result = @session.rows(sql, values)
        result.respond_to?(:values) ? result.values : result
      ensure
        result.clear if result.respond_to?(:clear) && result.respond_to?(:ntuples)
      end

      def quoted(name)
        name.map { |part| "\"#{part.gsub('"', '""')}\"" }.join(".")
      end

      def table(relation)
        _oid, _kind, _guarded, visible, schema, name = relation
        visible.start_with?("t") ? name : "#{schema}.#{name}"
      end
    end
  end
end
