# frozen_string_literal: true

require_relative "databases"

module Castellan
  module Instrument
    # Listens to connections of the pg gem that an application uses itself: `PG.connect(…).exec_params(…)`.
    #
    #   PgInstrument.attach    # {Instrument.subscribe} does
    #
    # The driver has no hook, so its methods are prepended, once and for the life of the process; while detached they only
    # ask that. What ActiveRecord and Sequel send is left to their own instruments. Not seen: what is sent without waiting
    # for the answer (`send_query`), and COPY.
    module PgInstrument
      NAME = "pg"

      # Prepended to PG::Connection: each name is a method of its own in the driver, none calls another. Without `*rest`, because ORMs
      # come through here as well, and an array for each statement is one too many. (`exec` with parameters is deprecated and not told.)
      module Statements
        def exec(sql, params = nil, format = nil, map = nil)
          params ? super : PgInstrument.watch(self, sql, nil, block_given?) { super(sql) }
        end

        def async_exec(sql, params = nil, format = nil, map = nil)
          params ? super : PgInstrument.watch(self, sql, nil, block_given?) { super(sql) }
        end

        def sync_exec(sql, params = nil, format = nil, map = nil)
          params ? super : PgInstrument.watch(self, sql, nil, block_given?) { super(sql) }
        end

        def query(sql, params = nil, format = nil, map = nil)
          params ? super : PgInstrument.watch(self, sql, nil, block_given?) { super(sql) }
        end

        def async_query(sql, params = nil, format = nil, map = nil)
          params ? super : PgInstrument.watch(self, sql, nil, block_given?) { super(sql) }
        end

        def exec_params(sql, params, format = nil, map = nil) = PgInstrument.watch(self, sql, params, block_given?) { super }
        def async_exec_params(sql, params, format = nil, map = nil) = PgInstrument.watch(self, sql, params, block_given?) { super }
        def sync_exec_params(sql, params, format = nil, map = nil) = PgInstrument.watch(self, sql, params, block_given?) { super }
        def exec_prepared(name, params = nil, format = nil, map = nil) = PgInstrument.run(self, name, params, block_given?) { super }
        def async_exec_prepared(name, params = nil, format = nil, map = nil) = PgInstrument.run(self, name, params, block_given?) { super }
        def sync_exec_prepared(name, params = nil, format = nil, map = nil) = PgInstrument.run(self, name, params, block_given?) { super }
        def prepare(name, sql, *rest) = PgInstrument.remember(self, name, sql) && super
        def async_prepare(name, sql, *rest) = PgInstrument.remember(self, name, sql) && super
        def sync_prepare(name, sql, *rest) = PgInstrument.remember(self, name, sql) && super
      end

      TEXTS = :@castellan_texts
      MOST_TEXTS = 1_000
      private_constant :TEXTS, :MOST_TEXTS

      class << self
        def loaded? = defined?(PG::Connection) ? true : false
        def attached? = @attached || false

        def attach
          return unless loaded?

          PG::Connection.prepend(Statements) unless PG::Connection.include?(Statements)
          @attached = true
        end

        def detach
          @attached = false
        end

        # Keeps the text of a prepared statement, which is executed by its name.
        # @return [true]
        def remember(connection, name, sql)
          return true if !attached? || connection.frozen?

          texts = connection.instance_variable_get(TEXTS) || connection.instance_variable_set(TEXTS, {})
          texts[name] = sql if texts.size < MOST_TEXTS
          true
        end

        # Public for {Statements}.
        def watch(connection, sql, binds, lent, &block)
          return yield unless attached? && RawStatement.unknown?(connection)

          RawStatement.tell(sql, name_of(connection), binds, rows(lent), &block)
        end

        # Public for {Statements}: a prepared one. What was prepared before anybody listened has no text but its name.
        def run(connection, name, binds, lent, &block)
          return yield unless attached? && RawStatement.unknown?(connection)

          text = connection.instance_variable_get(TEXTS)&.fetch(name, nil) || "EXECUTE #{name}"
          RawStatement.tell(text, name_of(connection), binds, rows(lent), &block)
        end

        private

        def name_of(connection) = Databases.name(NAME, connection) { [connection.host, connection.port, connection.db] }

        # A result that is lent to a block is not what comes back.
        def rows(lent) = lent ? RowCount::UNKNOWN : RowCount
      end
    end
  end
end
