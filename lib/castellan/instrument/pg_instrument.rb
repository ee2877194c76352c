# frozen_string_literal: true

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
        def exec(sql, params = nil, format = nil, map = nil) = params ? super : PgInstrument.watch(self, sql, nil) { super(sql) }
        def async_exec(sql, params = nil, format = nil, map = nil) = params ? super : PgInstrument.watch(self, sql, nil) { super(sql) }
        def sync_exec(sql, params = nil, format = nil, map = nil) = params ? super : PgInstrument.watch(self, sql, nil) { super(sql) }
        def query(sql, params = nil, format = nil, map = nil) = params ? super : PgInstrument.watch(self, sql, nil) { super(sql) }
        def async_query(sql, params = nil, format = nil, map = nil) = params ? super : PgInstrument.watch(self, sql, nil) { super(sql) }
        def exec_params(sql, params, format = nil, map = nil) = PgInstrument.watch(self, sql, params) { super }
        def async_exec_params(sql, params, format = nil, map = nil) = PgInstrument.watch(self, sql, params) { super }
        def sync_exec_params(sql, params, format = nil, map = nil) = PgInstrument.watch(self, sql, params) { super }
        def exec_prepared(name, params = nil, format = nil, map = nil) = PgInstrument.prepared(self, name, params) { super }
        def async_exec_prepared(name, params = nil, format = nil, map = nil) = PgInstrument.prepared(self, name, params) { super }
        def sync_exec_prepared(name, params = nil, format = nil, map = nil) = PgInstrument.prepared(self, name, params) { super }
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
        def watch(connection, sql, binds, &block)
          return yield unless attached? && RawStatement.unknown?(connection)

          RawStatement.tell(sql, NAME, binds, &block)
        end

        # Public for {Statements}. What was prepared before anybody listened has no text but its name.
        def prepared(connection, name, binds, &block)
          return yield unless attached? && RawStatement.unknown?(connection)

          text = connection.instance_variable_get(TEXTS)&.fetch(name, nil) || "EXECUTE #{name}"
          RawStatement.tell(text, NAME, binds, &block)
        end
      end
    end
  end
end
