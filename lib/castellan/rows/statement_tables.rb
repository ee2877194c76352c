# frozen_string_literal: true

require_relative "../uninterrupted"

module Castellan
  module Rows
    # Finds the tables that a statement reads, or why they are uncertain, with the database's catalogs.
    #
    #   StatementTables.new(adapter).call("SELECT * FROM users, roles")         # => ["roles", "users"]
    #   StatementTables.new(adapter).call("SELECT * FROM users WHERE f(id)")    # => "it calls f"
    #
    # Caches results for statements that differ only in literals. Tables are uncertain with views, functions
    # that are not immutable or not built in, tables of other databases, and row-level security.
    class StatementTables
      LIMIT = 500
      # Strings that PostgreSQL may read as the current time.
      DAY = /(?<![a-z])(?:now|today|tomorrow|yesterday)(?![a-z])/i
      private_constant :LIMIT

      def initialize(adapter)
        @adapter = adapter
        @kept = BoundedCache.new(limit: LIMIT)
        freeze
      end

      # @return [Array<String>, String] the tables, or why they are uncertain
      def call(sql)
        words = Words.new(sql, postgres: @adapter.dialect.name == :postgres)
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

      # Looks up every identifier in PostgreSQL's catalogs.
      #
      #   Postgres.new(session).call(sql, Words.new(sql))   # => ["billing.invoices", "users"], or the reason
      #
      # PostgreSQL reads only tables that the statement names, except through constructs that are refused
      # here. A superfluous table only invalidates a document too often. A table has its schema in the result if it
      # has it in the statement, because the result is kept for all search paths.
      class Postgres
        RELATIONS = <<~SQL
          SELECT DISTINCT c.relkind::text, c.relrowsecurity::text, pg_table_is_visible(c.oid)::text, n.nspname, c.relname, name
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
        # Operators of extensions, such as citext's =, are immutable.
        OPERATORS = <<~SQL
          SELECT oprname FROM pg_catalog.pg_operator JOIN pg_catalog.pg_proc ON pg_proc.oid = oprcode
          WHERE oprnamespace <> 'pg_catalog'::regnamespace AND provolatile <> 'i'
          AND EXISTS (SELECT 1 FROM unnest($1::text[]) AS run WHERE position(oprname IN run) > 0) LIMIT 1
        SQL
        SYMBOLS = %r{[-+*/<>=~!@#%^&|`?]+}
        UNWRITTEN = %w[= <> < > <= >= ~~ !~~ ~~* !~~*].freeze # the operators of IN, BETWEEN, ORDER BY and LIKE
        private_constant :RELATIONS, :FUNCTIONS, :ROW_FUNCTIONS, :OPERATORS, :SYMBOLS, :UNWRITTEN

        def initialize(session)
          @session = session
        end

        # @return [Array<String>, String] the tables, or why they are uncertain
        def call(sql, words)
          called = called(FUNCTIONS, words.calls) || called(ROW_FUNCTIONS, words.names.map(&:last)) ||
                   called(OPERATORS, sql.scan(SYMBOLS) | UNWRITTEN)
          return "it calls #{called}" if called

          @session.raw { |raw| explain(raw, sql) }
          relations = values(RELATIONS, words.tables.map { |name| quoted(name) })
          relations.filter_map { |relation| refusal(*relation) }.first || relations.map { |relation| table(*relation) }.uniq
        end

        private

        # Raises an error for a statement that cannot run, because its tables may be created later. The
        # savepoint keeps the error from aborting the caller's transaction.
        def explain(raw, sql)
          inside = raw.transaction_status == PG::PQTRANS_INTRANS
          raw.exec("SAVEPOINT castellan_explain") if inside
          raw.exec("EXPLAIN #{sql}")
        ensure
          Uninterrupted.call { roll_back(raw) } if inside
        end

        def roll_back(raw)
          PostgresDriver.recover(raw)
          raw.exec("ROLLBACK TO SAVEPOINT castellan_explain; RELEASE SAVEPOINT castellan_explain") unless raw.finished?
        rescue PG::Error # SAVEPOINT itself was interrupted, so the transaction stays aborted
          nil
        end

        def called(query, names)
          values(query, names).flatten.first if names.any?
        end

        def refusal(kind, guarded, _visible, _schema, name, _written)
          return "#{name} is no table" unless %w[r p].include?(kind)

          "the rows of #{name} depend on the role (row-level security)" if guarded.start_with?("t")
        end

        def table(_kind, _guarded, visible, schema, name, written)
          visible.start_with?("t") && written == quoted([name]) ? name : "#{schema}.#{name}"
        end

        def values(sql, list)
          result = @session.rows(sql, list)
          result.values
        ensure
          result&.clear
        end

        def quoted(name) = name.map { |part| "\"#{part.gsub('"', '""')}\"" }.join(".")
      end

      # Prepares the statement with an authorizer callback, which SQLite calls per table and function.
      #
      #   Sqlite.new(raw).call(sql, Words.new(sql, postgres: false))   # => ["users"], or the reason
      class Sqlite
        READ = 20
        FUNCTION = 31
        KINDS = "SELECT name, CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual table' ELSE type END FROM main.sqlite_master " \
                "WHERE type IN ('table', 'view') UNION ALL SELECT name, 'temporary ' || type FROM sqlite_temp_master"
        # Finds functions that the application defines, and scalar functions that are not deterministic
        # (SQLite does not flag aggregates and window functions as deterministic).
        UNSAFE = "SELECT 1 FROM pragma_function_list WHERE lower(name) = ? AND name NOT IN ('like', 'glob') " \
                 "AND (NOT builtin OR (type = 's' AND NOT flags & 2048)) LIMIT 1"
        CLOCK = %w[date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp].freeze
        # Table-valued functions that read no table.
        OWN = %w[json_each json_tree].freeze
        private_constant :READ, :FUNCTION, :KINDS, :UNSAFE, :CLOCK, :OWN

        def initialize(raw)
          @raw = raw
          @reads = []
          @functions = []
        end

        # @return [Array<String>, String] the tables, or why they are uncertain
        def call(sql, words)
          internal = words.names.flatten.find { |name| name.start_with?("sqlite_") } # SQLite also reads them to find table-valued functions
          return "#{internal} is no plain table" if internal

          prepare(sql)
          other = @reads.find { |_, database| database && database != "main" }
          return "it reads the database #{other.last}" if other

          function = @functions.uniq.find { |name| CLOCK.include?(name) || @raw.execute(UNSAFE, [name]).any? }
          function ? "it calls #{function}" : tables
        end

        private

        # Restores the application's authorizer afterwards.
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

      # Scans a statement for identifiers, function calls and literals.
      #
      #   words = Words.new(%(SELECT lower(u.name) FROM "users" u WHERE id = 7 AND name = 'Ada'))
      #   words.names      # => [["lower"], ["u"], ["name"], ["u", "name"], …], qualified names also in parts
      #   words.tables     # => [["lower"], ["u"], ["u", "name"], …], those that may be tables
      #   words.calls      # => ["lower"]
      #   words.skeleton   # => the SQL without the values of strings and numbers
      #   Words.new("SELECT E'\\''").reason   # => "an escape string"
      #
      # Has no grammar: names include keywords, and SQL that it cannot read with certainty, or that PostgreSQL
      # replaces by the current time or user, gets a reason.
      class Words
        QUOTED = /"(?:[^"]|"")*"|`(?:[^`]|``)*`/
        NAME = /#{QUOTED}|[a-z_[^\x00-\x7F]][\w$[^\x00-\x7F]]*/i
        # Sequel and Ransack write ESCAPE '\' after the pattern of LIKE.
        TEXT = /(#{QUOTED})|(?<=ESCAPE )'\\'(?!')|'((?:[^']|'')*)'/
        NUMBER = /(?<![\w$])\d[\w.]*/
        CAST = /(''|#{NUMBER})?\s*::\s*([\w"]*)/
        # Other casts may read a string as the current time.
        PLAIN = "smallint|integer|int[248]?|bigint|numeric|decimal|real|float[48]?|double|bool(?:ean)?|text|citext|" \
                "varchar|char(?:acter)?|bpchar|bytea|uuid|jsonb?|bit"
        UNCERTAIN = {
          "a comment" => %r{--|/\*},
          "a dollar-quoted string" => /\$\w*\$/,
          "an escape string" => /[\w&]''/,
          "an escaped name" => /&"/
        }.freeze
        UNCERTAIN_ON_POSTGRES = {
          "adjacent strings" => /''\s+''/,
          "a cast whose result may change" => /\bcast\s*\((?!\s*(?:''|#{NUMBER})\s+as\b)(?![^()]*\sas\s+(?:#{PLAIN})\b)/i
        }.freeze
        # The last four contain casts of their own.
        AMBIENT = /\b(?:current_(?:date|time|timestamp|user|role|catalog|schema)|localtime|localtimestamp|session_user|user|
                   skip\s+locked|xmltable|json_table|json_value|json_query)\b/ix
        private_constant :QUOTED, :TEXT, :NAME, :NUMBER, :CAST, :PLAIN, :UNCERTAIN, :UNCERTAIN_ON_POSTGRES, :AMBIENT

        # @return [String, nil] the construct that makes the tables uncertain
        # @return [Array<Array<String>>] names and qualified names, unquoted ones in lower case
        # @return [Array<Array<String>>] of these, the names that may be of tables, and the qualified names
        # @return [Array<String>] the names before an opening parenthesis
        # @return [String]
        attr_reader :reason, :names, :tables, :calls, :skeleton

        # @param postgres [Boolean] whether [ opens an array instead of quoting a name, and 'today' is a time
        def initialize(sql, postgres: true)
          @postgres = postgres
          strings = []
          text = sql.b.force_encoding(Encoding::UTF_8).scrub("\0")
          bare = text.gsub(TEXT) { Regexp.last_match(1) || (strings << Regexp.last_match(2).to_s and "''") }
          @reason = "an open quote" if text.gsub(TEXT, "").match?(/['"`\0]/)
          @reason = uncertain(bare.gsub(QUOTED, '""'), strings) || @reason
          @skeleton = bare.gsub(/(#{QUOTED})|#{NUMBER}/) { Regexp.last_match(1) || "?" }
          chains = bare.scan(/#{NAME}(?:\s*\.\s*#{NAME})*/).map { |chain| chain.scan(NAME).map { |name| plain(name) } }.uniq
          pairs = chains.flat_map { |chain| chain.each_cons(2).to_a } # schema and table, also before a column or after a database
          @names = (chains.flatten.map { |name| [name] } + pairs).uniq
          @tables = (chains.map { |chain| chain.first(1) } + pairs).uniq
          @calls = bare.scan(/(#{NAME})\s*\(/).map { |name,| plain(name) }.uniq
          freeze
        end

        private

        # @param outside [String] the SQL without the contents of strings and quoted names
        def uncertain(outside, strings)
          patterns = @postgres ? { **UNCERTAIN, **UNCERTAIN_ON_POSTGRES } : { "a name in brackets" => /\[/, **UNCERTAIN }
          found, = patterns.find { |_, pattern| pattern.match?(outside) }
          found ||= "the word #{outside[AMBIENT].upcase}" if AMBIENT.match?(outside)
          found ||= "an escape string" if strings.any? { |string| string.match?(/\\(?:'|\z)/) }
          found || (changing(outside, strings) if @postgres)
        end

        def changing(outside, strings)
          day = strings.find { |string| DAY.match?(string) } and return "the string '#{day[0, 40]}'"
          cast = outside.scan(CAST).find { |literal, type| literal.nil? && !type.match?(/\A(?:#{PLAIN})\z/i) }
          "a cast to #{cast.last}" if cast
        end

        def plain(name) = name.start_with?('"', "`") ? name[1..-2].gsub(name[0] * 2, name[0]) : name.downcase
      end
    end
  end
end
