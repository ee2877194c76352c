# frozen_string_literal: true

require "digest/sha2"
require_relative "../active_record_thread"

module Castellan
  module Versions
    # Yields the driver connection that the thread's queries use in ActiveRecord or Sequel.
    #
    #   connections = RawConnections.for(ActiveRecord::Base)   # a class with a pool, or a Sequel::Database
    #   connections.with { |raw| raw.exec("SELECT 1") }        # PG::Connection or SQLite3::Database
    #   connections.dialect                                     # => :postgres or :sqlite
    #
    # `observe` reports a statement to the ORM's log and subscribers. Never write through a raw connection:
    # the ORM would not notice.
    module RawConnections
      # The `place` of a connection with the default search path.
      HOME = ""
      DIALECTS = { /postg/i => :postgres, /sqlite/i => :sqlite }.freeze
      # Options of a connection that may choose a schema.
      SETTINGS = %i[service username options variables].freeze
      private_constant :DIALECTS, :SETTINGS

      # @param writing [Boolean] whether to use the primary database, also where queries go to a replica
      # @return [ActiveRecordConnections, SequelConnections]
      # @raise [ConfigurationError] for any other source
      def self.for(source, writing: false)
        return ActiveRecordConnections.new(source, writing: writing) if source.respond_to?(:connection_pool)

        sequel = source.respond_to?(:log_connection_yield) && source.respond_to?(:synchronize)
        return SequelConnections.new(source, writing: writing) if sequel

        raise ConfigurationError, "versions need ActiveRecord::Base (or a class of it) or a Sequel::Database, got #{source.inspect}"
      end

      # @raise [ConfigurationError] for other databases
      # @return [Symbol] :postgres or :sqlite
      def self.dialect(name)
        DIALECTS.each { |pattern, dialect| return dialect if pattern.match?(name.to_s) }
        raise ConfigurationError, "exact versions need triggers of PostgreSQL or SQLite, and there are none for #{name}; " \
                                  "use CommitVersions with Castellan.cache.fetch"
      end

      # Connections of ActiveRecord.
      class ActiveRecordConnections
        EVENT = "sql.active_record"
        # The database that is listened to, a pool that uses it, and the process.
        Home = Struct.new(:address, :pool, :pid)
        private_constant :EVENT, :Home

        def initialize(model, writing: false)
          @model = model
          @base = model.equal?(::ActiveRecord::Base)
          @writing = writing
          @own = OwnConnection.new
        end

        # @return [Symbol]
        def dialect
          RawConnections.dialect(model.connection_pool.db_config.adapter)
        end

        # @return [Boolean] false with `prepared_statements: false` in database.yml, as behind some poolers
        def prepared? = model.connection_pool.db_config.configuration_hash[:prepared_statements].to_s != "false"

        # @param other [Object] a model or dataset
        # @return [Boolean] whether its queries use the same connections, in the current role and shard
        def of?(other)
          return false unless other.respond_to?(:connection_pool)

          (!ActiveRecordThread.connected_elsewhere? && other.connection_specification_name == model.connection_specification_name) ||
            other.connection_pool.equal?(model.connection_pool)
        end

        # @return [Object] identifies the database of the current role and shard
        def database = model.connection_pool.db_config

        # @return [Boolean] whether this thread writes to the database that a new thread uses
        def default? = !ActiveRecordThread.connected_elsewhere? || in_role { default_database? }

        # Identifies a tenant: the database of the current role and shard, and the search path as set by
        # `schema_search_path=` on the thread's connection.
        # @return [String] "" without a database for the role and shard
        def address
          pool = pool_of_queries or return ""
          path = ActiveRecordThread.changed_search_path(pool, pool.active_connection?)
          of_pool, of_path, known = @address
          return known if of_pool.equal?(pool) && of_path == path

          (@address = [pool, path, address_of(pool, path)].freeze).last
        end

        # @return [Boolean, nil] whether the thread's queries are in a transaction
        def transaction?
          pool = pool_of_queries or return false
          connection = held(pool)
          connection ? connection.transaction_open? : left_open?(pool)
        end

        # @yieldparam raw [PG::Connection, SQLite3::Database]
        def with(&block)
          in_role { connected(&block) }
        end

        # Remembers the database that a new thread uses as the one that is listened to, see {#place}.
        # @param given [Hash, nil] the application's own arguments of PG.connect
        # @return [Hash] arguments of PG.connect
        def listened(given)
          pool = pool_of_new_threads
          @home = Home.new(address_of(pool, nil), pool, Process.pid) unless given && @home
          given || connected(pool) { |raw| raw.conninfo_hash.compact }
        end

        # Returns the search path without a query.
        # @return [String, nil] as set by `schema_search_path=`, "" for the default; nil in a transaction, on a
        #   replica or another shard, to which the queries of a new thread do not go, and after `establish_connection`
        #   with another database than the one that is {#listened} to
        def place
          place_by_default unless ActiveRecordThread.connected_elsewhere? && !default_database?
        end

        # @return [String, nil] see {#place}, in a thread that is known to be on the default role and shard
        def place_by_default
          pool = pool_of_new_threads
          return unless @home&.pool.equal?(pool) || home?(pool)

          connection = held(pool) or return left_open?(pool) ? nil : HOME
          connection.instance_variable_get(:@schema_search_path) || HOME unless connection.transaction_open?
        end

        # @return [Boolean] whether this thread holds no connection and is on the default role and shard
        def none?
          return false if ActiveRecordThread.connected_elsewhere?

          pool = pool_of_new_threads
          !held(pool) && !left_open?(pool)
        end

        # Like {#with}, for PostgreSQL and where {#none?}, with {OwnConnection}.
        # @return [Object, nil] the block's result; nil as well if {#with} is needed
        def own(&block) = @own.use(pool_of_new_threads, &block)

        # Instruments the statement only during a recording or with a debug log: Rails' instrumentation costs
        # several times as much as the statement, on every cache hit.
        def observe(_raw, sql, &block)
          return yield unless Recording.current || model.logger&.debug?

          ActiveSupport::Notifications.instrument(EVENT, sql: sql, name: "Castellan Version", binds: [], type_casted_binds: [],
                                                         cached: false, &block)
        end

        # Runs the statements in one transaction.
        def execute(statements)
          in_role do
            model.connection_pool.with_connection do |connection|
              connection.transaction { statements.each { |sql| connection.execute(sql) } }
            end
          end
        end

        private

        # `ApplicationRecord.connected_to` switches its models, and leaves ActiveRecord::Base where it is.
        def model = (::ActiveRecord.application_record_class if @base) || @model

        def in_role(&block)
          return yield unless @writing && ActiveRecordThread.connected_elsewhere?

          ::ActiveRecord::Base.connected_to(role: ::ActiveRecord.writing_role, prevent_writes: false, &block)
        end

        # Threads without an executor, such as the one that listens, would never release a connection that they keep.
        # The lock is that of a connection that a test with transactions shares among threads.
        def connected(pool = model.connection_pool)
          pool.with_connection do |connection|
            connection.lock.synchronize { yield connection.raw_connection }
          rescue StandardError
            drop_broken(connection)
            raise
          end
        end

        # ActiveRecord does not see the driver's error and would reuse the connection.
        def drop_broken(connection)
          connection.disconnect! unless connection.transaction_open? || connection.active?
        end

        # @return [Boolean] whether this process listens to nothing yet, or the pool uses that database
        def home?(pool)
          home = @home
          return true unless home && home.pid == Process.pid
          return false unless home.address == address_of(pool, nil)

          home.pool = pool
          true
        end

        # Tests with transactions may pin one connection for all threads.
        def held(pool) = pool.active_connection? || pool.instance_variable_get(:@pinned_connection)

        # After a request, Rails 7.2 returns the connection to the pool, even in a transaction that is not joinable, such
        # as that of DatabaseCleaner around a test. The next query takes the same connection.
        def left_open?(pool)
          pool.instance_variable_get(:@available).instance_variable_get(:@queue)&.last&.transaction_open?
        end

        def address_of(pool, path)
          config = pool.db_config.configuration_hash
          settings = config.slice(*SETTINGS)
          settings = Digest::SHA256.base64digest(settings.inspect) unless settings.empty? # they may contain secrets
          [*config.values_at(:host, :port, :database), settings,
           path || config[:schema_search_path] || config[:schema_order]].inspect.freeze
        end

        # @return [Object, nil] nil if the current role and shard have none
        def pool_of_queries
          (usable_pool unless ActiveRecordThread.connected_elsewhere?) ||
            model.connection_handler.retrieve_connection_pool(model.connection_specification_name,
                                                              role: model.current_role, shard: model.current_shard)
        end

        # `establish_connection` disconnects the pool that it replaces, and a forked process discards the pools of
        # its parent.
        def usable_pool
          pool = @pool
          pool if pool&.automatic_reconnect && !pool.discarded?
        end

        # The pool of the default role and shard.
        def pool_of_new_threads
          pool = usable_pool
          return pool if pool

          name = model.connection_specification_name
          @pool = model.connection_handler.retrieve_connection_pool(name, role: model.default_role, shard: model.default_shard) ||
                  model.connection_pool # raises ActiveRecord's error
        end

        def default_database?
          model.current_role == model.default_role && model.current_shard == model.default_shard &&
            model.connection_handler.equal?(model.default_connection_handler)
        end
      end

      # Connections of Sequel.
      class SequelConnections
        # @return [Sequel::Database]
        attr_reader :database

        def initialize(database, writing: false)
          @database = database
          @writing = writing
        end

        # @return [Symbol]
        def dialect
          RawConnections.dialect(@database.database_type)
        end

        # @return [Symbol] not behind a pooler, because Sequel itself prepares no statements either
        def prepared? = :direct

        # @param model [Object] a model or dataset
        # @return [Boolean] whether it uses the same Sequel::Database
        def of?(model)
          model.respond_to?(:db) && model.db.equal?(@database)
        end

        # @return [String] see {ActiveRecordConnections#address}; the search path is that of the options
        def address
          server = @database.pool.send(:pick_server, :read_only) if @database.sharded? # that of `with_server`
          [*@database.opts.values_at(:host, :port, :database, :search_path), server].inspect
        end

        # @return [Boolean] whether this thread is in no `with_server`, except of the replica
        def default? = !@database.sharded? || %i[default read_only].include?(@database.pool.send(:pick_server, :read_only))

        # @return [Boolean] whether the thread's queries are in a transaction; Sequel takes a connection to find out
        def transaction? = !none? && @database.in_transaction?

        # Reads from the server that datasets read from, because a replica may be behind.
        # @yieldparam raw [PG::Connection, SQLite3::Database]
        def with(&block)
          in_role { @database.synchronize(@writing ? :default : :read_only, &block) }
        end

        # (see ActiveRecordConnections#listened)
        def listened(given) = given || with { |raw| raw.conninfo_hash.compact }

        # @return [String, nil] "", because Sequel cannot return the search path of a connection; nil in a
        #   transaction, and with `servers:`
        def place = (HOME unless @database.sharded? || transaction?)
        alias place_by_default place

        # @return [Boolean] whether this thread holds no connection of the only server
        def none?
          pool = @database.pool
          !@database.sharded? && pool.respond_to?(:owned_connection, true) && !pool.send(:owned_connection, ::Sequel.current)
        end

        # @return [nil] {#with} is always needed
        def own = nil

        # Logs the statement with Sequel's loggers.
        def observe(raw, sql, &block)
          @database.log_connection_yield(sql, raw, &block)
        end

        # Runs the statements in one transaction.
        def execute(statements)
          in_role { @database.transaction { statements.each { |sql| @database.run(sql) } } }
        end

        private

        # The extension server_block sends the default server's statements to another one.
        def in_role(&block)
          @writing && @database.respond_to?(:with_server) ? @database.with_server(:default, &block) : yield
        end
      end
    end
  end
end
