# frozen_string_literal: true

require_relative "databases"

module Castellan
  module Instrument
    # Prepended to the sqlite3 gem by {Drivers}: `SQLite3::Database.new(path).execute(…)`. `execute_batch` and a
    # prepared statement that is only stepped through are not seen. Of rows that are read one by one, the time is
    # that of the first, and their number is unknown.
    module Sqlite3Instrument
      NAME = "SQLite3"
      private_constant :NAME

      # Prepended to SQLite3::Database.
      module Statements
        def execute(sql, *binds)
          return super unless Drivers.observe?
          return Sqlite3Instrument.statement(self, sql, binds.first) { super } unless block_given?

          rows = 0
          Sqlite3Instrument.statement(self, sql, binds.first, ->(_result) { rows }) do
            super do |row|
              rows += 1
              yield row
            end
          end
        end
      end

      # Prepended to SQLite3::Statement: prepared ones, and those of `query`, `execute2` and `get_first_value`.
      module Prepared
        # Keeps the values that are bound before the execution. `bind_params` calls it, too.
        def bind_param(key, value)
          (@castellan_bound ||= {})[key] = value if Drivers.attached?
          super
        end

        def clear_bindings!
          @castellan_bound = nil
          super
        end

        def execute(*binds)
          return super unless Drivers.observe?

          Sqlite3Instrument.statement(@connection, Sqlite3Instrument.text(self), Sqlite3Instrument.binds(self, binds.flatten(1))) { super }
        end
      end

      class << self
        # Prepends, if the driver is loaded.
        def prepend_to_driver
          return unless defined?(SQLite3::Database)

          Instrument.prepend(Statements, SQLite3::Database)
          Instrument.prepend(Prepared, SQLite3::Statement)
        end

        # Public for the modules above. Each database in memory is one of its own.
        def statement(database, sql, binds, rows = RowCount, &send)
          name = Databases.name(NAME, database) { database.filename.to_s.empty? ? database.object_id : database.filename }
          Drivers.statement(sql, name, binds, rows, &send)
        end

        # Values that were bound before the subscription are unknown, so they count as different each time.
        def binds(statement, given)
          return given if !given.empty? || statement.bind_parameter_count.zero?

          statement.instance_variable_get(:@castellan_bound)&.values || [Clock.monotonic_ns]
        end

        # @return [String] the SQL; sqlite3 before version 2 does not keep it
        def text(statement) = (statement.sql if statement.respond_to?(:sql)) || "EXECUTE #{statement.object_id}"
      end
    end
  end
end
