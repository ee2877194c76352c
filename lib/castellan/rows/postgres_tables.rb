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
        visit.call(JSON.parse(explain("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) #{sql}")))
        [read.uniq, texts]
      end

      def explain(sql)
        @session.raw do |raw|
          next in_savepoint(raw, sql) if raw.transaction_status == PG::PQTRANS_INTRANS

          rows(sql).flatten.first
        end
      end

      # Keeps an error of EXPLAIN from aborting the caller's transaction. All three statements are one message:
      # if it does not run to its end, the transaction has failed, else the savepoint is released.
      def in_savepoint(raw, sql)
        raw.send_query("SAVEPOINT castellan_explain; #{sql}; RELEASE SAVEPOINT castellan_explain")
        _, plan, = answers(raw).each(&:check)
        plan.getvalue(0, 0)
      ensure
        PostgresDriver::InterruptedConnection.uninterrupted { roll_back(raw) }
      end

      def answers(raw)
        answers = []
        while (answer = raw.get_result)
          answers << answer
        end
        answers
      end

      def roll_back(raw)
        PostgresDriver.recover(raw)
        return if raw.finished? || raw.transaction_status != PG::PQTRANS_INERROR

        raw.exec("ROLLBACK TO SAVEPOINT castellan_explain; RELEASE SAVEPOINT castellan_explain")
      rescue PG::Error # SAVEPOINT itself was interrupted, and the transaction stays aborted
        nil
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
