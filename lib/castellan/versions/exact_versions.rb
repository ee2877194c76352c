# frozen_string_literal: true

require "digest"

module Castellan
  module Versions
    # Tokens that change with every committed change of a table, whoever makes it: triggers, on PostgreSQL and SQLite.
    #
    #   castellan_versions :users, :roles                             # in a migration of Rails, see {ActiveRecordSchema}
    #   versions = ExactVersions.new(ActiveRecord::Base)              # or a Sequel::Database
    #   versions.install(%w[users roles])                             # without Rails
    #   versions.current([Dependency.new("users"), Dependency.new("roles")]) # => "733-741-1763736000000001.734-…", or nil
    #
    # One prepared statement, read before the data on the connection that the data comes from. It returns nil where a write
    # could go unnoticed, and the document is then answered uncached: a trigger is missing or not enabled always, a partition
    # or an inheriting table has none, the table is filled by logical replication, or its rows depend on the role (row-level
    # security). Disabling a trigger, ALTER TABLE and attaching a partition change the token.
    #
    # Blind spots: what changes no table (a replaced function, a renamed enum label, columns renamed to each other's names on
    # PostgreSQL), SQLite's in {SQLiteTriggers}. A replica is exact about its own state: read the version from the replica
    # that the data comes from.
    class ExactVersions
      # `tokens` reads the same without a look at the triggers, where that can be spared; see {SQLiteReader}.
      Statement = Struct.new(:name, :sql, :tokens)
      LIMIT = 1000 # distinct lists of tables; includes come from clients, and further lists are built anew each time
      private_constant :Statement, :LIMIT

      # @param source [Class, Object] ActiveRecord::Base or a class of it, or a Sequel::Database
      # @param prepared [Boolean] false behind a pooler that cannot keep prepared statements
      # @param log [#call, nil] told, once an outage, of a database that does not answer
      def initialize(source, prepared: true, log: nil)
        @connections = RawConnections.for(source)
        @prepared = prepared
        @log = log || ->(line) { warn(line) }
        @failed = false
        @statements = {}.freeze
        @mutex = Mutex.new
      end

      # @param dependencies [Array<Dependency>]
      # @return [String, nil] nil: nothing exact can be said, answer uncached
      def current(dependencies)
        return if Castellan.off?
        return "0" if dependencies.empty?

        tables = dependencies.map(&:table)
        read { |raw| value(raw, statement(tables) { |names| [triggers.current(names), triggers.tokens(names)] }) }
      end

      # Installs the triggers, each table in a transaction; again is harmless, and makes what was cached before stale.
      # @param tables [Array<String>]
      def install(tables)
        tables.each { |table| @connections.execute(triggers.install(Dependency.new(table).table)) }
        nil
      end

      # Removes the triggers and the counters of tables.
      def uninstall(tables)
        tables.each { |table| @connections.execute(triggers.uninstall(Dependency.new(table).table)) }
        nil
      end

      # @return [Boolean] whether every table has its trigger; false also inside a transaction that has written (PostgreSQL)
      def installed?(tables)
        tables.all? { |table| current([Dependency.new(table)]) }
      end

      private

      # Chosen at the first use, because an application that boots may not have its database yet.
      def triggers
        postgres? ? PostgresTriggers : SQLiteTriggers
      end

      def reader
        @reader ||= (postgres? ? PostgresReader : SQLiteReader).new(prepared: @prepared)
      end

      def postgres?
        (@dialect ||= @connections.dialect) == :postgres
      end

      # nil when the database fails: the query for the data says why.
      def read
        @connections.with { |raw| ready?(raw) ? yield(raw) : nil }.tap { @failed = false if @failed }
      rescue reader.class::ERROR => error
        @log.call("castellan: answers are not cached, because the version cannot be read: #{error.message}") unless @failed
        @failed = true
        nil
      end

      # Without the tables of an installation the SELECT would be an error, which ends a transaction on PostgreSQL.
      def ready?(raw)
        @ready ||= !reader.value(raw, "castellan_ready", triggers.ready).nil?
      end

      def value(raw, statement)
        observe(raw, statement) { reader.value(raw, statement.name, statement.sql, statement.tokens) }
      end

      def observe(raw, statement, &block)
        @connections.observe(raw, statement.sql, &block)
      end

      # Read without the lock: the Hash is replaced, never changed. The name is of the text, because a connection outlives this.
      def statement(names)
        @statements[names] || @mutex.synchronize { @statements[names] || remember(names, *yield(names.uniq)) }
      end

      def remember(names, sql, tokens = nil)
        statement = Statement.new("castellan_#{Digest::SHA256.hexdigest(sql)[0, 24]}", sql.freeze, tokens&.freeze).freeze
        @statements = @statements.merge(names.dup.freeze => statement).freeze if @statements.size < LIMIT
        statement
      end
    end
  end
end
