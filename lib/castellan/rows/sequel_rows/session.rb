# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Runs SELECTs on Sequel's connection, in the caller's transaction, with Sequel's log and errors.
      #
      #   Session.new(DB, Dialect.for(:sqlite)).rows("SELECT id FROM users")   # => [[1], [2]], on PostgreSQL a PG::Result
      #
      # Reads go to the :read_only server of a sharded database, as a dataset's do.
      class Session
        include ColumnValues

        SERVER = :read_only
        private_constant :SERVER

        def initialize(database, dialect)
          @database = database
          @dialect = dialect
        end

        # (see ActiveRecordRows::Session#read)
        def read(queries)
          connected do |connection|
            pipeline = PostgresPipeline.new(connection, queries) if queries.size > 1 && pipelines?(connection)
            queries.each do |query|
              query.rows = @database.log_connection_yield(query.sql, connection) do
                next PostgresDriver.texts(pipeline.result) if pipeline

                run(connection, query.sql, query.ids, query.kept, query.indexed)
              end
            end
          ensure
            PostgresDriver::InterruptedConnection.uninterrupted { pipeline.close } if pipeline
          end
        end

        # (see ActiveRecordRows::Session#rows)
        def rows(sql, ids = nil, kept: false, indexed: false)
          connected do |connection|
            @database.log_connection_yield(sql, connection) { run(connection, sql, ids, kept, indexed) }
          end
        end

        def raw(&block)
          @database.synchronize(SERVER, &block)
        end

        private

        def connected
          interrupt = nil
          @database.synchronize(SERVER) do |connection|
            yield connection
          rescue Exception => interrupt # rubocop:disable Lint/RescueException, Lint/UselessRescue -- `disconnected` may replace the error
            raise
          ensure
            disconnected(connection) if connection.respond_to?(:finished?)
          end
        rescue ::Sequel::DatabaseDisconnectError => error
          raise interrupt || error
        rescue ::Sequel::Error
          raise
        rescue StandardError => error
          raise error unless Adapter.driver_error?(error)

          raise ::Sequel.convert_exception_class(error, Adapter.connection_lost?(error) ? ::Sequel::DatabaseDisconnectError : ::Sequel::DatabaseError)
        end

        # Sequel removes a connection from its pool when this error leaves `synchronize`.
        # @raise [Sequel::DatabaseDisconnectError] if an interrupt has closed the connection
        def disconnected(connection)
          return unless connection.finished?

          raise ::Sequel::DatabaseDisconnectError, "a read was interrupted and the server did not answer, so its connection was closed"
        end

        def run(connection, sql, ids, kept, indexed)
          return SqliteStatements.for(connection).rows(sql, ids && @dialect.bind(ids)) if @dialect.name == :sqlite

          PostgresDriver.rows(connection, sql, ids, prepared: kept && direct?(connection), indexed: indexed)
        end

        def pipelines?(connection)
          @dialect.overlaps? && direct?(connection)
        end

        # Behind a connection pooler, statements are neither prepared nor sent in a pipeline, which it may not support.
        def direct?(connection)
          PostgresStatements.for(connection).direct?
        end
      end
    end
  end
end
