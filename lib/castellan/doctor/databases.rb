# frozen_string_literal: true

module Castellan
  module Doctor
    # Finds the databases of ActiveRecord and Sequel, and runs work in transactions that are rolled back.
    #
    #   Databases.connected.map(&:to_s)                  # => ["sqlite3 (db/users.sqlite3), ActiveRecord"]
    #   Databases.rolled_back { application.call(env) }
    #
    # ActiveRecord pools opened meanwhile are included. Writes of a driver's own connection, of a Sequel
    # thread or of another process are not rolled back; {TableComparison} reports them.
    module Databases
      GUARD = "castellan_doctor"

      # A database behind one of ActiveRecord's connection pools.
      class ActiveRecordDatabase
        # @return [ActiveRecord::ConnectionAdapters::ConnectionPool]
        attr_reader :pool

        def initialize(pool)
          @pool = pool
        end

        def eql?(other) = other.is_a?(ActiveRecordDatabase) && pool.equal?(other.pool)
        alias == eql?

        def hash = pool.hash

        # @return [String] without user or password
        def to_s
          name = @pool.db_config.database || "no database is named"
          "#{@pool.db_config.adapter} (#{PublicUrl.of(name)}), ActiveRecord"
        end

        # @return [Integer, nil] number of rows; nil if the table does not exist here
        def rows(table)
          @pool.with_connection do |connection|
            connection.select_value("SELECT COUNT(*) FROM #{connection.quote_table_name(table)}") if connection.data_source_exists?(table)
          end
        end

        # @return [Array<String>]
        def tables = @pool.with_connection(&:tables)

        # @param table [String]
        # @param limit [Integer] maximal number of rows
        # @return [Array<Array>] rows
        def contents(table, limit)
          @pool.with_connection do |connection|
            connection.uncached { connection.select_rows("SELECT * FROM #{connection.quote_table_name(table)} LIMIT #{limit}") }
          end
        end

        # @return what the block returns
        # @raise [Error] if the database is unreachable, or the block ended the transaction
        def rolled_back
          Databases.reach(self) { reach }
          start
          begin
            yield
          ensure
            kept = finish
          end.tap { Databases.refuse_commit(self) if kept }
        end

        # Since 7.2, pins one connection for all threads of the process, like Rails' own tests; it must be
        # leased first, because a pinned connection that is not is verified before each statement. On 7.1 the
        # transaction must be joinable, because at the end of a request Rails releases a connection whose
        # transaction is not.
        def start
          @pool.respond_to?(:pin_connection!) ? @pool.pin_connection!(true) : connection.begin_transaction(joinable: true, _lazy: false)
          connection.create_savepoint(GUARD)
        end

        # @return [Boolean] whether the block ended the transaction, so that its writes persist
        def finish
          kept = ended?
          @pool.respond_to?(:unpin_connection!) ? @pool.unpin_connection! : connection.rollback_transaction
          kept
        end

        # @raise [StandardError] if the database does not respond
        def reach = connection.verify!

        private

        def connection = @pool.respond_to?(:lease_connection) ? @pool.lease_connection : @pool.connection

        # The savepoint disappears with the transaction. A new one is begun, because ActiveRecord rolls back
        # at the end.
        def ended?
          connection.exec_rollback_to_savepoint(GUARD)
          false
        rescue ActiveRecord::ActiveRecordError
          begin
            connection.execute("BEGIN")
          rescue ActiveRecord::ActiveRecordError
            nil # the application has begun another transaction
          end
          true
        end
      end

      # A Sequel database. Threads that a request starts use other connections, outside of the transaction.
      class SequelDatabase
        def initialize(database)
          @database = database
        end

        # @return [String] without user or password
        def to_s
          "#{@database.database_type} (#{name}), Sequel"
        end

        # (see ActiveRecordDatabase#rows)
        def rows(table)
          @database.from(table.to_sym).count if names.include?(table.to_sym)
        end

        # Makes the application's transactions savepoints, so that it can roll one back and continue.
        # (see ActiveRecordDatabase#rolled_back)
        def rolled_back
          Databases.reach(self) { reach }
          kept = result = nil
          @database.transaction(rollback: :always, savepoint: true, auto_savepoint: true) do
            @database.run("SAVEPOINT #{GUARD}")
            result = yield
          ensure
            kept = ended?
          end
          Databases.refuse_commit(self) if kept
          result
        end

        # (see ActiveRecordDatabase#tables)
        def tables = @database.tables.map(&:to_s)

        # (see ActiveRecordDatabase#contents)
        def contents(table, limit) = @database.from(table.to_sym).limit(limit).map { |row| row.to_h.values }

        # (see ActiveRecordDatabase#reach)
        def reach = @database.test_connection

        private

        def ended?
          @database.run("ROLLBACK TO SAVEPOINT #{GUARD}")
          false
        rescue Sequel::DatabaseError
          begin
            @database.run("BEGIN")
          rescue Sequel::DatabaseError
            nil
          end
          true
        end

        # SQLite without a file is in memory; a JDBC database has its name in the URL.
        def name
          return "in memory" if @database.database_type == :sqlite && !@database.opts[:database] && !@database.opts[:uri]

          PublicUrl.of(@database.opts[:database] || @database.uri)
        end

        def names
          @names ||= @database.tables + @database.views
        end
      end

      module_function

      # @return [Array<ActiveRecordDatabase, SequelDatabase>]
      def connected
        active_record + sequel
      end

      # @return [Array<ActiveRecordDatabase, SequelDatabase>] without those that do not respond
      def reachable
        connected.select do |database|
          database.reach || true
        rescue LoadError, StandardError
          false
        end
      end

      # Runs the block in a transaction of every database, and rolls all of them back.
      # @return what the block returns
      # @raise [Error] if a database is unreachable, or the block ended a transaction
      def rolled_back(databases = connected, &block)
        return new_pools_rolled_back(&block) if databases.empty?

        result = nil
        databases.first.rolled_back { result = rolled_back(databases.drop(1), &block) }
        result
      end

      # ActiveRecord notifies `!connection.active_record` for each new pool; Rails' own tests use it the same
      # way.
      def new_pools_rolled_back
        return yield unless defined?(ActiveRecord::Base)

        known = active_record
        opened = []
        subscriber = ActiveSupport::Notifications.subscribe("!connection.active_record") do |*|
          (active_record - known - opened).each { |database| opened << database.tap(&:start) }
        end
        result = begin
          yield
        ensure
          ActiveSupport::Notifications.unsubscribe(subscriber)
          # A pool that is gone closed its connections, which rolled back; Rails checks for migrations on such one.
          kept = (opened & active_record).select(&:finish)
        end
        kept.each { |database| refuse_commit(database) }
        result
      end

      # @raise [Error] always
      def refuse_commit(database)
        raise Error, "the application ended the doctor's transaction on #{database} itself (a COMMIT or ROLLBACK outside of the ORM's " \
                     "transactions): what the request had written until then is kept.\nExamine a copy of the database, or another request."
      end

      # @param statements [Enumerable<String>] SQL
      # @return [Array<String>] names after FROM and JOIN, sorted
      def tables(statements)
        statements.flat_map { |sql| sql.scan(/\b(?:FROM|JOIN)\s+((?:["`\w]+\.)?["`]?\w+["`]?)/i).flatten }
                  .map { |name| name.delete('"`').split(".").last }.uniq.sort
      end

      # @return [Hash{String => Integer}] rows by table, without tables that do not exist
      def row_counts(tables, databases = connected)
        tables.to_h { |table| [table, databases.lazy.filter_map { |database| database.rows(table) }.first] }.compact
      end

      def active_record
        return [] unless defined?(ActiveRecord::Base)

        ActiveRecord::Base.connection_handler.connection_pool_list(:writing).map { |pool| ActiveRecordDatabase.new(pool) }
      end

      def sequel
        defined?(Sequel::DATABASES) ? Sequel::DATABASES.map { |database| SequelDatabase.new(database) } : []
      end

      # @raise [Error] with the driver's message, for any error class: a wrong configuration raises
      #   ArgumentError
      def reach(database)
        yield
      rescue LoadError, StandardError => error
        raise Error, "the database #{database} cannot be reached: #{error.message.lines.first.to_s.scrub.strip}\n" \
                     "Start its server and make the database (in Rails: RAILS_ENV=production bin/rails db:prepare), name another " \
                     "(often DATABASE_URL), or examine another environment: --env development."
      end
    end
  end
end
