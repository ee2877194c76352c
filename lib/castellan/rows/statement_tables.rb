# frozen_string_literal: true

module Castellan
  module Rows
    # Finds the tables that a statement reads, with the database's catalogs.
    # Returns the reason as a String if they are not certain.
    #
    #   StatementTables.new(adapter).call("SELECT * FROM users, roles")         # => ["roles", "users"]
    #   StatementTables.new(adapter).call("SELECT * FROM users WHERE f(id)")    # => "it calls f"
    #
    # Results are cached for statements that differ only in literals. Not certain are views, functions that are
    # not immutable or not built in, tables of other databases, and row-level security.
    class StatementTables
      LIMIT = 500
      private_constant :LIMIT

      def initialize(adapter)
        @adapter = adapter
        @kept = BoundedCache.new(limit: LIMIT)
        freeze
      end

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
        return @adapter.dialect.reason if @adapter.dialect.reason

        @adapter.session("SCHEMA") do |session|
          next Postgres.new(session).call(sql, words) if @adapter.dialect.name == :postgres

          session.raw { |raw| Sqlite.new(raw).call(sql, words) }
        end
      end

      def orm_error?(error)
        (defined?(::ActiveRecord::ActiveRecordError) && error.is_a?(::ActiveRecord::ActiveRecordError)) ||
          (defined?(::Sequel::Error) && error.is_a?(::Sequel::Error))
      end

      # Looks every identifier up in PostgreSQL's catalogs. PostgreSQL reads no table that a statement does not
      # name, but through what is refused. A table too many only invalidates a document too often.
      #
      #   Postgres.new(session).call(sql, SqlWords.new(sql))   # => ["billing.invoices", "users"], or the reason
      class Postgres
        RELATIONS = <<~SQL
          SELECT DISTINCT c.relkind::text, c.relrowsecurity::text, pg_table_is_visible(c.oid)::text, n.nspname, c.relname
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
        # Those of extensions (citext's =) are immutable.
        OPERATORS = <<~SQL
          SELECT oprname FROM pg_catalog.pg_operator JOIN pg_catalog.pg_proc ON pg_proc.oid = oprcode
          WHERE oprnamespace <> 'pg_catalog'::regnamespace AND provolatile <> 'i'
          AND EXISTS (SELECT 1 FROM unnest($1::text[]) AS run WHERE position(oprname IN run) > 0) LIMIT 1
        SQL
        SYMBOLS = %r{[-+*/<>=~!@#%^&|`?]+}
        UNWRITTEN = %w[= <> < > <= >= ~~ !~~ ~~* !~~*].freeze # the operators of IN, BETWEEN, ORDER BY and LIKE
        private_constant :RELATIONS, :FUNCTIONS, :ROW_FUNCTIONS, :OPERATORS, :SYMBOLS, :UNWRITTEN

        # @param session [Object] see {Session}
        def initialize(session)
          @session = session
        end

        # @return [Array<String>, String] the tables, or the reason why they are not certain
        def call(sql, words)
          called = called(FUNCTIONS, words.calls) || called(ROW_FUNCTIONS, words.names.map(&:last)) ||
                   called(OPERATORS, sql.scan(SYMBOLS) | UNWRITTEN)
          return "it calls #{called}" if called

          @session.raw { |raw| explain(raw, sql) }
          relations = values(RELATIONS, words.names.map { |name| quoted(name) })
          relations.filter_map { |relation| refusal(*relation) }.first || relations.map { |relation| table(*relation) }.uniq
        end

        private

        # Raises an error for a statement that cannot run, because its tables may be created later. In a transaction
        # the error would abort what the caller does.
        def explain(raw, sql)
          inside = raw.transaction_status == PG::PQTRANS_INTRANS
          raw.exec("SAVEPOINT castellan_explain") if inside
          raw.exec("EXPLAIN #{sql}")
        ensure
          PostgresDriver::InterruptedConnection.uninterrupted { roll_back(raw) } if inside
        end

        def roll_back(raw)
          PostgresDriver.recover(raw)
          raw.exec("ROLLBACK TO SAVEPOINT castellan_explain; RELEASE SAVEPOINT castellan_explain") unless raw.finished?
        rescue PG::Error # SAVEPOINT itself was interrupted, and the transaction stays aborted
          nil
        end

        def called(query, names)
          values(query, names).flatten.first if names.any?
        end

        def refusal(kind, guarded, _visible, _schema, name)
          return "#{name} is no table" unless %w[r p].include?(kind)

          "the rows of #{name} depend on the role (row-level security)" if guarded.start_with?("t")
        end

        def table(_kind, _guarded, visible, schema, name)
          visible.start_with?("t") ? name : "#{schema}.#{name}"
        end

        def values(sql, list)
          result = @session.rows(sql, list)
          result.values
        ensure
          result&.clear
        end

        def quoted(name)
          name.map { |part| "\"#{part.gsub('"', '""')}\"" }.join(".")
        end
      end

      # Prepares the statement on SQLite with an authorizer callback, which is called for each table and function.
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

        def initialize(raw)
          @raw = raw
          @reads = []
          @functions = []
        end

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
