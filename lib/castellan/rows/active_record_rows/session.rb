# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Runs SELECTs on the raw connection as ActiveRecord would.
      #
      #   session.rows("SELECT id FROM users")   # => [[1], [2]], on PostgreSQL a PG::Result
      #   session.rows("SELECT … WHERE user_id = ANY($1::bigint[])", [1, 2])
      #
      # Applies query log tags and other query transformers, emits `sql.active_record`, raises ActiveRecord's
      # errors and refuses writes. Bypasses the query cache, so that rows are never older than the statement.
      # Holds the connection's lock meanwhile, because a test with transactions shares it among threads.
      class Session
        include ColumnValues

        EVENT = "sql.active_record"
        NONE = [].freeze
        EXPLAIN = ::ActiveRecord.const_defined?(:ExplainSubscriber) ? ::ActiveRecord::ExplainSubscriber : NilClass
        # Subscribers that receive a monotonic start and finish, such as ActiveRecord's, which
        # sums the time for the log. They are called directly: ActiveSupport's handle for each
        # statement costs more than the subscribers.
        TIMED = ::ActiveSupport::Notifications::Fanout::Subscribers::MonotonicTimed
        private_constant :EVENT, :NONE, :EXPLAIN, :TIMED

        def self.name_for(adapter)
          "#{adapter.model.name} Castellan"
        end

        # @param name [String, nil] names the statements in the log; nil: {.name_for} the adapter
        def initialize(connection, name, adapter)
          @connection = connection
          @name = name
          @adapter = adapter
          @dialect = adapter.dialect
          @subscribers = Session.subscribers
          @timed = @subscribers.all?(TIMED)
        end

        # Before ActiveRecord 8.1, the subscriber of `explain` is always
        # registered but idle outside `explain`.
        # @return [Array<Object>] the subscribers that use the events of statements
        def self.subscribers
          ::ActiveSupport::Notifications.notifier.all_listeners_for(EVENT).reject do |one|
            one.silenced?(EVENT) || (one.delegate.instance_of?(EXPLAIN) && !::ActiveRecord::ExplainRegistry.collect?)
          end
        end

        # Sends the queries in one round trip if possible. The duration of each event is then the wait since
        # the previous result, so that the durations of one round trip add up to its total time.
        # @param queries [Array<Query>] each receives its rows
        def read(queries)
          locked { queries.size > 1 && pipelines? ? pipelined(queries) : each_read(queries) }
        end

        # @param ids [Array<Integer, String>, nil] the value of the SQL's only placeholder
        # @param kept [Boolean] whether the SQL is one of few that repeat; it is prepared
        #   if ActiveRecord prepares statements
        # @param indexed [Boolean] whether an index finds the rows of one id
        # @return [Array<Array>, PG::Result] a PG::Result in text format
        def rows(sql, ids = nil, kept: false, indexed: false)
          text = transformed(sql)
          refuse(text) if @pipeline.nil? && @connection.write_query?(text)
          kept = text == sql && (kept || @dialect.name == :sqlite)
          return locked { run(text, ids, kept, indexed) } if @subscribers.empty?

          payload = payload(text)
          observe(payload) do
            rows = locked { run(text, ids, kept, indexed) }
            payload[:row_count] = count(rows)
            rows
          end
        end

        def raw
          locked { yield @connection.raw_connection }
        end

        private

        def locked(&) = @connection.lock.synchronize(&)

        def pipelined(queries)
          @pipeline = pipeline(queries)
          each_read(queries)
        ensure
          Uninterrupted.call { close_pipeline } if @pipeline
        end

        def each_read(queries)
          queries.each do |query|
            @name = Session.name_for(query.adapter) if @subscribers.any?
            query.rows = rows(query.sql, query.ids, kept: query.kept, indexed: query.indexed)
          end
        end

        def observe(payload, &block)
          return ::ActiveSupport::Notifications.instrumenter.instrument(EVENT, payload, &block) unless @timed

          began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          begin
            yield
          rescue Exception => error # rubocop:disable Lint/RescueException -- as ActiveSupport does
            payload.update(exception: [error.class.name, error.message], exception_object: error)
            raise
          ensure
            publish(began, Process.clock_gettime(Process::CLOCK_MONOTONIC), payload)
          end
        end

        def publish(began, ended, payload)
          id = ::ActiveSupport::Notifications.instrumenter.id
          @subscribers.each { |one| one.publish(EVENT, began, ended, id, payload) }
        end

        def run(sql, ids, kept, indexed)
          @dialect.name == :postgres ? postgres(sql, ids, kept, indexed) : sqlite(sql, ids, kept)
        rescue ::ActiveRecord::ActiveRecordError
          raise
        rescue StandardError => error
          reconnect_later if Adapter.driver_error?(error) && Adapter.connection_lost?(error)
          raise translated(error, sql)
        end

        # A surrounding `unprepared_statement` block turns prepared statements off.
        def postgres(sql, ids, kept, indexed)
          return PostgresDriver.texts(@pipeline.result) if @pipeline

          raw = @connection.raw_connection
          PostgresDriver.rows(raw, sql, ids, prepared: kept && @connection.prepared_statements, indexed: indexed)
        ensure
          reconnect_later if raw&.finished?
        end

        # Query transformers may change each statement, so transformed statements are not pipelined.
        def pipelines?
          @dialect.name == :postgres && PostgresDriver::Pipeline.possible? && @connection.prepared_statements &&
            ::ActiveRecord.query_transformers.empty?
        end

        def pipeline(queries)
          queries.each { |query| refuse(query.sql) if @connection.write_query?(query.sql) }
          PostgresDriver::Pipeline.new(@connection.raw_connection, queries)
        end

        def sqlite(sql, ids, kept)
          value = @dialect.bind(ids) if ids
          SqliteStatements.for(@connection.raw_connection).rows(sql, value, kept: kept && @connection.prepared_statements)
        end

        # A second interrupt may abort `close` as well.
        def close_pipeline
          @pipeline.close
        ensure
          reconnect_later if @pipeline.lost?
          @pipeline = nil
        end

        # Disconnects, because ActiveRecord trusts a dead connection for some seconds before it verifies it.
        # It must not reconnect in a transaction: there ROLLBACK fails, and ActiveRecord discards the
        # connection. The statement is not sent again, because a new connection lacks what the request has set
        # (search_path, a setting that row-level security reads).
        def reconnect_later
          @connection.disconnect! unless @connection.transaction_open?
        end

        def payload(sql)
          { sql: sql, name: @name || Session.name_for(@adapter), binds: NONE, type_casted_binds: NONE, statement_name: nil,
            async: false, connection: @connection, row_count: 0 }
        end

        def transformed(sql)
          transformers = ::ActiveRecord.query_transformers
          return sql if transformers.empty?

          transformers.reduce(sql) { |text, transformer| transformer.call(text, @connection) }
        end

        def refuse(sql)
          raise ::ActiveRecord::ReadOnlyError, "Write query attempted by rows, which only read: #{sql}"
        end

        # @return [Exception] ActiveRecord's error for a driver's error, so
        #   that the application's `rescue` works
        def translated(error, sql)
          return error unless Adapter.driver_error?(error)

          lost = Adapter.connection_lost?(error)
          expired = !lost && error.respond_to?(:result) && PostgresStatements.expired?(error) # a transaction must be restarted
          return @connection.send(:translate_exception_class, error, sql, NONE) unless lost || expired

          kind = lost ? ::ActiveRecord::ConnectionFailed : ::ActiveRecord::PreparedStatementCacheExpired
          kind.new("#{error.class}: #{error.message}", connection_pool: @connection.pool)
        end
      end
    end
  end
end
