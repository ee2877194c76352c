# frozen_string_literal: true

require_relative "databases"

module Castellan
  module Instrument
    # Listens to databases of the sqlite3 gem that an application uses itself: `SQLite3::Database.new(path).execute(…)`.
    #
    #   Sqlite3Instrument.attach    # {Instrument.subscribe} does
    #
    # The driver has no hook, so the methods that everything else goes through are prepended, once and for the life of the
    # process; while detached they only ask that. What ActiveRecord and Sequel send is left to their own instruments. Not
    # seen: a prepared statement that is only stepped through. Where rows are read as they are asked for, the time is that
    # of the first, and their number is not known.
    module Sqlite3Instrument
      NAME = "SQLite3"

      # Prepended to SQLite3::Database.
      module Statements
        def execute(sql, *binds)
          return super unless Sqlite3Instrument.unknown?(self)

          name = Sqlite3Instrument.name_of(self)
          return RawStatement.tell(sql, name, binds.first) { super } unless block_given?

          rows = 0
          RawStatement.tell(sql, name, binds.first, ->(_answer) { rows }) do
            super do |row|
              rows += 1
              yield row
            end
          end
        end

        # Answers one row of the last statement.
        def execute_batch(sql, *binds)
          return super unless Sqlite3Instrument.unknown?(self)

          RawStatement.tell(sql, Sqlite3Instrument.name_of(self), binds.first, RowCount::UNKNOWN) { super }
        end

        def execute_batch2(sql)
          return super unless Sqlite3Instrument.unknown?(self)

          RawStatement.tell(sql, Sqlite3Instrument.name_of(self), nil) { super }
        end
      end

      # Prepended to SQLite3::Statement: prepared ones, and those of `query`, `execute2` and `get_first_value`.
      module Prepared
        # @return [Hash, nil] what was bound while somebody listened
        attr_reader :castellan_bound

        # Called by `bind_params`, too.
        def bind_param(key, value)
          (@castellan_bound ||= {})[key] = value if Sqlite3Instrument.attached?
          super
        end

        def clear_bindings!
          @castellan_bound = nil
          super
        end

        def execute(*binds)
          return super unless Sqlite3Instrument.unknown?(@connection)

          name = Sqlite3Instrument.name_of(@connection)
          RawStatement.tell(Sqlite3Instrument.text(self), name, Sqlite3Instrument.binds(self, binds.flatten(1))) { super }
        end
      end

      # Prepended to SQLite3::Statement before version 2, which does not say what it was made of.
      module Text
        attr_reader :sql

        def initialize(database, sql)
          @sql = sql
          super
        end
      end

      class << self
        def loaded? = defined?(SQLite3::Database) ? true : false
        def attached? = @attached || false

        def attach
          return unless loaded?

          SQLite3::Database.prepend(Statements) unless SQLite3::Database.include?(Statements)
          SQLite3::Statement.prepend(Prepared) unless SQLite3::Statement.include?(Prepared)
          SQLite3::Statement.prepend(Text) unless SQLite3::Statement.method_defined?(:sql)
          @attached = true
        end

        def detach
          @attached = false
        end

        # Public for the modules above.
        def unknown?(database) = attached? && RawStatement.unknown?(database)

        # Each in memory is one of its own.
        def name_of(database) = Databases.name(NAME, database) { database.filename.to_s.empty? ? database.object_id : database.filename }

        # What was bound before anybody listened is not known, so it is taken for another value each time: who binds in a loop does so
        # because values differ.
        def binds(statement, given)
          return given if !given.empty? || statement.bind_parameter_count.zero?

          statement.castellan_bound&.values || [Clock.monotonic_ns]
        end

        # @return [String] of one that was made before anybody listened it may be unknown
        def text(statement) = statement.sql || "EXECUTE #{statement.object_id}"
      end
    end
  end
end
