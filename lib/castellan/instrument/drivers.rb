# frozen_string_literal: true

require_relative "../instrument"
require_relative "databases"

module Castellan
  module Instrument
    # Notifies recordings of statements that the application sends through pg or sqlite3 directly. Opt-in:
    #
    #   require "castellan/instrument/drivers"
    #
    # Prepends to the drivers' classes at the first subscription. During a recording, each statement reads some
    # frames of the stack, because the ORMs' statements come through here as well and must not count twice.
    # Not observed: pg's `send_query` and COPY, sqlite3's `execute_batch`, and prepared statements that are
    # only stepped through.
    module Drivers
      OURS = Regexp.escape(File.dirname(__dir__))
      ORM = %r{/active_record/connection_adapters/|/sequel/(?:adapters|database|connection_pool)\b|\A#{OURS}/(?!instrument/)}
      # Where the ORMs and we call the drivers. Their other files call blocks of others: transactions, a pool's connection.
      ADAPTER = %r{/active_record/connection_adapters/(?:postgresql|sqlite3)|/sequel/adapters/|\A#{OURS}/(?:purge|rows|versions)/}
      FRAMES = 20
      DRIVER = %r{/sqlite3/(?:database|statement|resultset)\.rb\z|/pg/connection\.rb\z|\A#{OURS}/instrument/}
      MOST_TEXTS = 1_000
      UNKNOWN = ->(_result) {}
      private_constant :OURS, :ORM, :ADAPTER, :FRAMES, :DRIVER

      # For PG::Connection. In the driver each of these names is a separate method, and none calls another.
      # With a block, the method does not return the result.
      module Postgres
        %i[exec async_exec sync_exec query async_query exec_params async_exec_params sync_exec_params].each do |method|
          define_method(method) do |sql, *rest, &block|
            next super(sql, *rest, &block) unless Drivers.observe?

            Drivers.pg(self, sql, rest.first, block) { super(sql, *rest, &block) }
          end
        end

        %i[exec_prepared async_exec_prepared sync_exec_prepared].each do |method|
          define_method(method) do |name, *rest, &block|
            next super(name, *rest, &block) unless Drivers.observe?

            sql = @castellan_texts&.fetch(name, nil) || "EXECUTE #{name}" # prepared before the subscription
            Drivers.pg(self, sql, rest.first, block) { super(name, *rest, &block) }
          end
        end

        %i[prepare async_prepare sync_prepare].each do |method|
          define_method(method) do |name, sql, *rest|
            if Instrument.subscribed? && !frozen?
              @castellan_texts ||= {}
              @castellan_texts[name] = sql if @castellan_texts.size < MOST_TEXTS
            end
            super(name, sql, *rest)
          end
        end
      end

      # For SQLite3::Database. If rows are read one by one, the time is that of the first row.
      module Sqlite
        def execute(sql, *binds)
          return super unless Drivers.observe?
          return Drivers.sqlite(self, sql, binds.first) { super } unless block_given?

          rows = 0
          Drivers.sqlite(self, sql, binds.first, ->(_result) { rows }) do
            super do |row|
              rows += 1
              yield row
            end
          end
        end
      end

      # For SQLite3::Statement: prepared statements, and those of `query`, `execute2` and `get_first_value`.
      module SqliteStatement
        # Keeps the values that are bound before the execution. `bind_params` calls this method as well.
        def bind_param(key, value)
          (@castellan_bound ||= {})[key] = value if Instrument.subscribed?
          super
        end

        def clear_bindings!
          @castellan_bound = nil
          super
        end

        # Version 1 does not keep the SQL. Values that were bound before the subscription are unknown and
        # count as different.
        def execute(*binds)
          return super unless Drivers.observe?

          sql = (self.sql if respond_to?(:sql)) || "EXECUTE #{object_id}"
          given = binds.flatten(1)
          given = @castellan_bound&.values || [Clock.monotonic_ns] if given.empty? && bind_parameter_count.positive?
          Drivers.sqlite(@connection, sql, given) { super }
        end
      end

      class << self
        def attach
          Instrument.prepend(Postgres, PG::Connection) if defined?(PG::Connection)
          return unless defined?(SQLite3::Database)

          Instrument.prepend(Sqlite, SQLite3::Database)
          Instrument.prepend(SqliteStatement, SQLite3::Statement)
        end

        # @return [Boolean] whether the application, not an ORM, sends the statement inside a recording
        def observe? = Instrument.subscribed? && !Recording.current.nil? && !orm?(senders)

        # This and {sqlite} are public because the modules above call them.
        def pg(connection, sql, binds, block, &send)
          name = Databases.name("pg", connection) { [connection.host, connection.port, connection.db] }
          statement(sql, name, binds, block ? UNKNOWN : Instrument.method(:rows), &send)
        end

        # Each in-memory database has a name of its own.
        def sqlite(database, sql, binds, rows = Instrument.method(:rows), &send)
          name = Databases.name("SQLite3", database) { database.filename.to_s.empty? ? database.object_id : database.filename }
          statement(sql, name, binds, rows, &send)
        end

        private

        # @param rows [#call] returns the number of rows of a result
        def statement(sql, name, binds, rows)
          recording = Recording.current
          started = Clock.monotonic_ns
          begin
            result = yield
          rescue *errors
            recording.notify(:failed)
            raise
          ensure
            recording.listener.query(sql, name, started, Clock.monotonic_ns - started, false, rows.call(result),
                                     binds.is_a?(Hash) ? binds.values : binds)
          end
        end

        # The errors of the drivers. Other errors come from the block that reads the rows.
        def errors = [(PG::Error if defined?(PG::Error)), (SQLite3::Exception if defined?(SQLite3::Exception))].compact

        # Gems that measure prepend to the drivers' methods, too: then their frames are between the ORM and this file.
        # @param frames [Array<Thread::Backtrace::Location>] innermost first
        def orm?(frames)
          return false if frames.empty?
          return true if frames.first.path.to_s.match?(ORM)

          frames.each do |frame|
            path = frame.path.to_s
            return true if path.match?(ADAPTER)
            return false if CallSite.number(path).positive?
          end
          false
        end

        # @return [Array<Thread::Backtrace::Location>] the frames outside of the drivers and of the instruments
        def senders = caller_locations(2, FRAMES).reject { |frame| frame.path.to_s.match?(DRIVER) }
      end
    end
  end
end

Castellan::Instrument.add(Castellan::Instrument::Drivers)
