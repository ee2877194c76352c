# frozen_string_literal: true

module Castellan
  module Doctor
    # Finds the databases of ActiveRecord and Sequel, and runs work in transactions that are rolled back.
    #
    #   Sandbox.connected.map(&:to_s)                  # => ["sqlite3 (db/users.sqlite3), ActiveRecord"]
    #   Sandbox.rolled_back { application.call(env) }
    #
    # Includes ActiveRecord pools that are opened during the work. Does not roll back writes through a
    # driver's own connection, in another thread with Sequel, or in another process; {TableComparison} reports
    # them.
    module Sandbox
      GUARD = "castellan_doctor"
      private_constant :GUARD

      # Guards a transaction with a savepoint, which is gone if the application ended the transaction.
      class Database
        def guard = run("SAVEPOINT #{GUARD}")

        # If the application ended the transaction, begins a new one for the ORM to roll back.
        # @return [Boolean] whether the application ended the transaction; its writes then persist
        def ended?
          run("ROLLBACK TO SAVEPOINT #{GUARD}")
          false
        rescue *errors
          begin
            run("BEGIN")
          rescue *errors
            nil # the application has begun another transaction
          end
          true
        end

        # Runs the block in a {#transaction} that is rolled back.
        # @return the result of the block
        # @raise [Error] if the database is unreachable, or the block ended the transaction
        def rolled_back
          check
          committed = result = nil
          transaction do
            guard
            result = yield
          ensure
            committed = ended?
          end
          committed ? refuse_commit : result
        end

        # @raise [Error] with the driver's message, whatever the class of the driver's error
        def check
          reach
        rescue LoadError, StandardError => error
          raise Error, "the database #{self} cannot be reached: #{error.message.lines.first.to_s.scrub.strip}\n" \
                       "Start its server and make the database (in Rails: RAILS_ENV=production bin/rails db:prepare), " \
                       "name another (often DATABASE_URL), or examine another environment: --env development."
        end

        # @raise [Error] always
        def refuse_commit
          raise Error, "the application ended the doctor's transaction on #{self} itself (a COMMIT or ROLLBACK outside " \
                       "of the ORM's transactions): what the request had written until then is kept.\n" \
                       "Examine a copy of the database, or another request."
        end
      end

      # The database of one of ActiveRecord's connection pools.
      class ActiveRecordDatabase < Database
        # @return [ActiveRecord::ConnectionAdapters::ConnectionPool]
        attr_reader :pool

        def initialize(pool)
          super()
          @pool = pool
        end

        # @return [String] without user name and password
        def to_s
          name = @pool.db_config.database || "no database is named"
          "#{@pool.db_config.adapter} (#{PublicUrl.of(name)}), ActiveRecord"
        end

        # @return [Integer, nil] the number of rows; nil if this database does not have the table
        def rows(table)
          @pool.with_connection do |connection|
            quoted = connection.quote_table_name(table)
            connection.select_value("SELECT COUNT(*) FROM #{quoted}") if connection.data_source_exists?(table)
          end
        end

        # @return [Array<String>]
        def tables = @pool.with_connection(&:tables)

        # @return [Array<Array>] at most `limit` rows
        def contents(table, limit)
          @pool.with_connection do |connection|
            sql = "SELECT * FROM #{connection.quote_table_name(table)} LIMIT #{limit}"
            connection.uncached { connection.select_rows(sql) }
          end
        end

        # Since 7.2, pins one connection for all threads, as Rails' tests do. Lease it first: otherwise the
        # pinned connection is verified before each statement. In 7.1 the transaction must be joinable,
        # because Rails releases a connection at the end of a request if its transaction is not joinable.
        def start = pins? ? @pool.pin_connection!(true) : connection.begin_transaction(joinable: true, _lazy: false)

        def finish = pins? ? @pool.unpin_connection! : connection.rollback_transaction

        def transaction
          start
          begin
            yield
          ensure
            finish
          end
        end

        # @raise [StandardError] if the database does not respond
        def reach = connection.verify!

        private

        def pins? = @pool.respond_to?(:pin_connection!)
        def connection = pins? ? @pool.lease_connection : @pool.connection
        def run(sql) = connection.execute(sql)
        def errors = [ActiveRecord::ActiveRecordError]
      end

      # A Sequel database.
      # Threads that the request starts use other connections, outside of the transaction.
      class SequelDatabase < Database
        def initialize(database)
          super()
          @database = database
        end

        # A SQLite database without a file is in memory. The name of a JDBC database is in its URL.
        # @return [String] without user name and password
        def to_s
          name = @database.opts[:database]
          in_memory = @database.database_type == :sqlite && !name && !@database.opts[:uri]
          "#{@database.database_type} (#{in_memory ? "in memory" : PublicUrl.of(name || @database.uri)}), Sequel"
        end

        # (see ActiveRecordDatabase#rows)
        def rows(table)
          @names ||= @database.tables + @database.views
          @database.from(table.to_sym).count if @names.include?(table.to_sym)
        end

        # (see ActiveRecordDatabase#tables)
        def tables = @database.tables.map(&:to_s)

        # (see ActiveRecordDatabase#contents)
        def contents(table, limit) = @database.from(table.to_sym).limit(limit).map { |row| row.to_h.values }

        # The application's transactions become savepoints, so that it can roll one back and continue.
        def transaction(&block) = @database.transaction(rollback: :always, savepoint: true, auto_savepoint: true, &block)

        # (see ActiveRecordDatabase#reach)
        def reach = @database.test_connection

        private

        def run(sql) = @database.run(sql)
        def errors = [Sequel::DatabaseError]
      end

      module_function

      # @return [Array<Database>]
      def connected = active_record + sequel

      # @return [Array<Database>] the databases that respond
      def reachable
        connected.select do |database|
          database.reach || true
        rescue LoadError, StandardError
          false
        end
      end

      # Runs the block in a transaction of every database and rolls all of them back.
      # @return the result of the block
      # @raise [Error] if a database is unreachable, or the block ended a transaction
      def rolled_back(databases = connected, &block)
        return new_pools_rolled_back(&block) if databases.empty?

        databases.first.rolled_back { rolled_back(databases.drop(1), &block) }
      end

      # ActiveRecord notifies `!connection.active_record` for each new pool. Rails' tests use this, too.
      def new_pools_rolled_back
        return yield unless defined?(ActiveRecord::Base)

        known = active_record.map(&:pool)
        opened = []
        subscriber = ActiveSupport::Notifications.subscribe("!connection.active_record") do |*|
          fresh = active_record.reject { |database| (known + opened.map(&:pool)).include?(database.pool) }
          fresh.each { |database| opened << database.tap(&:start).tap(&:guard) }
        end
        begin
          result = yield
        ensure
          ActiveSupport::Notifications.unsubscribe(subscriber)
          # If a pool is gone, its connections were closed and so rolled back; Rails does this in its check of
          # migrations.
          left = active_record.map(&:pool)
          committed = opened.select { |database| left.include?(database.pool) && database.ended?.tap { database.finish } }
        end
        committed.each(&:refuse_commit)
        result
      end

      # @return [Hash{String => Integer}] the number of rows of each table that exists
      def row_counts(tables)
        tables.to_h { |table| [table, connected.lazy.filter_map { |database| database.rows(table) }.first] }.compact
      end

      def active_record
        return [] unless defined?(ActiveRecord::Base)

        ActiveRecord::Base.connection_handler.connection_pool_list(:writing).map { |pool| ActiveRecordDatabase.new(pool) }
      end

      def sequel = defined?(Sequel::DATABASES) ? Sequel::DATABASES.map { |database| SequelDatabase.new(database) } : []
    end
  end
end
