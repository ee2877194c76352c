# frozen_string_literal: true

require_relative "../bounded_cache"

module Castellan
  module Versions
    # Reads version tokens that triggers change on every commit, on PostgreSQL and SQLite.
    #
    #   castellan_versions :users, :roles                             # in a Rails migration
    #   versions = ExactVersions.new(ActiveRecord::Base)              # or a Sequel::Database
    #   versions.install(%w[users roles])                             # without Rails
    #   versions.current([Dependency.new("users"), Dependency.new("roles")]) # => "1796010192237741.16387-738-…", or nil
    #
    # Runs one prepared statement before the data is read, on the same connection; outside of transactions,
    # threads that read the same versions at the same time share it. The version is nil, so that the response
    # is not cached, if a write could go unnoticed: a trigger is missing or not ENABLE ALWAYS, a partition or
    # inheriting table has none, logical replication fills the table, a crash would empty it (UNLOGGED), or
    # row-level security is on. Disabling a trigger, ALTER TABLE and attaching a partition change the token.
    #
    # `install(%w[posts], by: "account_id")` also counts the changes by column value (an integer or a UUID, in
    # 1,024 buckets, so two values may share a version), for documents of one tenant or one record. SQLite
    # counts only tables, because `INSERT OR REPLACE` deletes rows with other values without a trigger.
    #
    # Does not detect changes outside of tables (a replaced function, a renamed enum label, swapped column
    # names on PostgreSQL); for SQLite see {SQLiteTriggers}. Versions differ between PostgreSQL servers and
    # after a restart: read version and data from the same server.
    class ExactVersions
      # `tokens` is the SQL that reads the version without checking the triggers, see {SQLiteReader}. `snapshots`
      # are {PostgresSnapshot}s by values, and `relations` is SQL that they need.
      Statement = Struct.new(:sql, :tokens, :shared, :snapshots, :relations)
      LIMIT = 1000 # lists of tables; clients choose includes
      GRANT = "as their owner, run GRANT SELECT ON castellan_versions, castellan_buckets TO PUBLIC"
      private_constant :Statement, :LIMIT, :GRANT

      # @param source [Class, Object] ActiveRecord::Base or a subclass, or a Sequel::Database
      # @param prepared [Boolean, nil] false behind a pooler that does not support prepared statements; nil: true,
      #   unless database.yml says `prepared_statements: false`, or Sequel connects through a pooler
      # @param log [#call, nil] called once per database and outage if it fails; default standard error
      def initialize(source, prepared: nil, log: nil)
        @connections = RawConnections.for(source)
        @prepared = prepared
        @log = log || ->(line) { warn(line) }
        @failed = ObjectSpace::WeakMap.new # database => whether it fails, see RawConnections
        @any_failed = false
        @lock = Mutex.new
        @ready = ObjectSpace::WeakMap.new
        @statements = BoundedCache.new(limit: LIMIT)
      end

      # @param dependencies [Array<Dependency>]
      # @yieldparam error [StandardError] of the driver, if the database fails
      # @return [String, nil] nil if the version is unknown or the database fails: respond without the cache;
      #   the query for the data raises the error
      def current(dependencies)
        return if Castellan.off?
        return "0" if dependencies.empty?

        dependencies.any?(&:value) ? read { |raw| of_rows(raw, dependencies) } : of_tables(dependencies)
      rescue reader.class::ERROR => error
        reason = error.message.lines.first&.chomp
        @log.call("castellan: answers are not cached, because the version cannot be read: #{reason}") if note(true)
        yield error if block_given?
        nil
      end

      # @param model [Object] a model or dataset
      # @return [Boolean] whether its tables are in the database whose versions are read
      def of?(model) = @connections.of?(model)

      # @return [String] the database and search path of the thread's queries, so that tenants share neither
      #   stale documents nor per-viewer values
      def address = @connections.address

      # Installs the triggers, each table in a transaction. Idempotent, but it invalidates cached documents.
      # @param tables [Array<String>]
      # @param notify [Boolean] whether writes also notify {NotifiedVersions}; ignored on SQLite
      # @param by [String, Symbol, Array] columns whose values have versions of their own, see {Dependency};
      #   ignored on SQLite
      def install(tables, notify: false, by: [])
        options = postgres? ? { notify: notify, by: [*by].map(&:to_s) } : {}
        [*tables].each { |table| @connections.execute(triggers.install(Dependency.new(table).table, **options)) }
        nil
      end

      # Removes the triggers and counters.
      def uninstall(tables)
        [*tables].each { |table| @connections.execute(triggers.uninstall(Dependency.new(table).table)) }
        nil
      end

      # @return [Boolean] whether every table has its triggers; on PostgreSQL also false in a transaction that
      #   has written
      def installed?(tables)
        tables.all? { |table| current([Dependency.new(table)]) }
      end

      # @return [Array<String>] the tables that have no triggers or do not exist; empty in a transaction and
      #   while the database fails
      def missing(tables)
        return [] if postgres? && @connections.with { |raw| raw.transaction_status.nonzero? }

        tables.reject { |table| current([Dependency.new(table)]) { return [] } }
      rescue StandardError # of the driver or the ORM; only a log line depends on it
        []
      end

      # @return [String, nil] why the database refuses to return the version, such as a privilege that the role lacks
      def failure(tables)
        current(tables.map { |table| Dependency.new(table) }) do |error|
          reason = error.message.lines.first.to_s.chomp
          return reason.match?(/permission denied.* castellan_/) ? "#{reason}; #{GRANT}" : reason
        end
        nil
      end

      # @return [Boolean] whether each write to the tables sends a notification
      def notifies?(tables)
        return false unless postgres?

        ask = ->(raw) { ready?(raw) ? reader.value(raw, triggers.notifies(tables)) : nil }
        found = @connections.none? ? without_pool(ask) : [@connections.with(&ask)]
        recovered
        found.first.to_s.start_with?("t")
      rescue reader.class::ERROR
        false
      end

      private

      # Threads that hold a connection do not share: it may be in a transaction or have its own search path,
      # and a thread that waits for another must not hold the connection for which the other one waits.
      def of_tables(dependencies)
        statement = @statements.fetch(dependencies) { statement(dependencies.map(&:table).uniq) }
        ask = ->(raw) { ready?(raw) ? version(raw, statement, []) : nil }
        return @connections.with(&ask).tap { recovered } unless postgres? && @connections.none?

        found = statement.shared.call { without_pool(ask) }
        recovered
        found.first
      end

      # For threads that hold no connection: they need not wait for one of the pool, unless another thread does the same.
      # @return [Array] the result
      def without_pool(ask) = @connections.own { |raw| [ask.call(raw)] } || [@connections.with(&ask)]

      def of_rows(raw, dependencies)
        counters = dependencies.map(&(postgres? ? :counter : :table))
        statement = @statements.fetch(counters) { statement(postgres? ? counters : counters.uniq) }
        version(raw, statement, postgres? ? dependencies.filter_map(&:value) : [])
      end

      def version(raw, statement, values)
        return value(raw, statement.sql, statement.tokens) unless postgres?

        snapshot = statement.snapshots.fetch(values) { PostgresSnapshot.new(statement.sql, statement.relations) }
        snapshot.version(raw, values) { |sql, sent| value(raw, sql, sent) }
      end

      def value(raw, sql, values)
        @connections.observe(raw, sql) { reader.value(raw, sql, values) }
      end

      # Chosen on first use, because the database may not exist when the application boots.
      def triggers
        postgres? ? PostgresTriggers : SQLiteTriggers
      end

      def reader
        @reader ||= (postgres? ? PostgresReader : SQLiteReader).new(prepared: @prepared.nil? ? @connections.prepared? : @prepared)
      end

      def postgres?
        (@dialect ||= @connections.dialect) == :postgres
      end

      def read
        @connections.with { |raw| ready?(raw) ? yield(raw) : nil }.tap { recovered }
      end

      def recovered
        note(false) if @any_failed
      end

      # @param failed [Boolean] whether the database of this thread fails
      # @return [Boolean] whether it did not before
      def note(failed)
        database = @connections.database
        @lock.synchronize do
          before = @failed[database]
          @failed[database] = failed
          @any_failed = @failed.values.any?
          !before
        end
      end

      # Checks that the counters exist: otherwise the SELECT fails and aborts a transaction on PostgreSQL, where the
      # search path may be another each time. Else once per connection, because a shard may lack them.
      def ready?(raw)
        return !reader.value(raw, triggers.ready).nil? if postgres? && raw.transaction_status != PG::PQTRANS_IDLE

        @ready[raw] ||= !reader.value(raw, triggers.ready).nil?
      end

      def statement(tables)
        sql = triggers.current(tables).freeze
        relations = triggers.relations(tables).freeze if postgres?
        Statement.new(sql, triggers.tokens(tables)&.freeze, SharedRead.new, BoundedCache.new, relations).freeze
      end
    end
  end
end
