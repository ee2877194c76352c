# frozen_string_literal: true

module Castellan
  module Doctor
    # The databases that the application is connected to, through ActiveRecord and Sequel: what they are, how many rows the tables
    # that were read hold, and a transaction around work that leaves nothing behind.
    #
    #   Databases.connected.map(&:to_s)                  # => ["sqlite3 (db/users.sqlite3), ActiveRecord"]
    #   Databases.rolled_back { application.call(env) }
    #
    # What another process or a connection of the application's own making writes is not rolled back.
    module Databases
      # What ActiveRecord is connected to, by one of its pools.
      class ActiveRecordDatabase
        def initialize(pool)
          @pool = pool
        end

        # @return [String] without user or password
        def to_s
          name = @pool.db_config.database || "no database is named"
          "#{@pool.db_config.adapter} (#{PublicUrl.of(name)}), ActiveRecord"
        end

        # @return [Integer, nil] nil when there is no such table here
        def rows(table)
          @pool.with_connection do |connection|
            connection.select_value("SELECT COUNT(*) FROM #{connection.quote_table_name(table)}") if connection.data_source_exists?(table)
          end
        end

        # @raise [Error] when it cannot be reached
        def rolled_back(&block)
          Databases.reach(self) { reach }
          @pool.respond_to?(:pin_connection!) ? pinned(&block) : joined(&block)
        end

        # @raise [StandardError] when it does not answer
        def reach
          @pool.respond_to?(:lease_connection) ? @pool.lease_connection.verify! : @pool.connection.verify!
        end

        private

        # From 7.2 on: one connection for every thread of the process, as in Rails' own tests. It is leased already,
        # because a pinned connection that is not is asked whether it is alive before each statement.
        def pinned
          @pool.pin_connection!(true)
          begin
            yield
          ensure
            @pool.unpin_connection!
          end
        end

        # Joinable, because Rails gives back a connection in a transaction that is not when a request ends. A savepoint where
        # a test has opened a transaction already.
        def joined
          @pool.connection.transaction(requires_new: true) do
            yield
            raise ActiveRecord::Rollback
          end
        end
      end

      # What Sequel is connected to. Threads that a request starts have connections of their own there, outside the transaction.
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

        # Transactions of the application become savepoints, so that it can roll back one of them and go on.
        # (see ActiveRecordDatabase#rolled_back)
        def rolled_back(&block)
          Databases.reach(self) { reach }
          @database.transaction(rollback: :always, savepoint: true, auto_savepoint: true, &block)
        end

        # (see ActiveRecordDatabase#reach)
        def reach = @database.test_connection

        private

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

      # @return [Array<ActiveRecordDatabase, SequelDatabase>] without those that do not answer: nothing can be written there
      def reachable
        connected.select do |database|
          database.reach || true
        rescue LoadError, StandardError
          false
        end
      end

      # Runs the block in a transaction of every database, and rolls all of them back.
      # @return what the block returned
      # @raise [Error] when a database cannot be reached
      def rolled_back(databases = connected, &block)
        return yield if databases.empty?

        result = nil
        databases.first.rolled_back { result = rolled_back(databases.drop(1), &block) }
        result
      end

      # @param statements [Enumerable<String>] SQL
      # @return [Array<String>] what they read, by the names after FROM and JOIN
      def tables(statements)
        statements.flat_map { |sql| sql.scan(/\b(?:FROM|JOIN)\s+((?:["`\w]+\.)?["`]?\w+["`]?)/i).flatten }
                  .map { |name| name.delete('"`').split(".").last }.uniq.sort
      end

      # @return [Hash{String => Integer}] rows by table, of the tables that exist
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

      # @raise [Error] with what the driver said, whatever its class: a wrong configuration is an ArgumentError
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
