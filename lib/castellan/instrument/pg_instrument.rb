# frozen_string_literal: true

require_relative "databases"

module Castellan
  module Instrument
    # Prepended to PG::Connection by {Drivers}: `PG.connect(…).exec_params(…)`. Statements that are sent without
    # waiting for the result (`send_query`) and COPY are not seen.
    module PgInstrument
      NAME = "pg"
      TEXTS = :@castellan_texts
      MOST_TEXTS = 1_000
      private_constant :NAME, :TEXTS, :MOST_TEXTS

      # Each name is a method of its own in the driver; none calls another.
      module Statements
        %i[exec async_exec sync_exec query async_query exec_params async_exec_params sync_exec_params].each do |method|
          define_method(method) do |sql, *rest, &block|
            next super(sql, *rest, &block) unless Drivers.observe?

            PgInstrument.statement(self, sql, rest.first, block) { super(sql, *rest, &block) }
          end
        end

        %i[exec_prepared async_exec_prepared sync_exec_prepared].each do |method|
          define_method(method) do |name, *rest, &block|
            next super(name, *rest, &block) unless Drivers.observe?

            PgInstrument.statement(self, PgInstrument.text(self, name), rest.first, block) { super(name, *rest, &block) }
          end
        end

        %i[prepare async_prepare sync_prepare].each do |method|
          define_method(method) do |name, sql, *rest|
            PgInstrument.keep_text(self, name, sql)
            super(name, sql, *rest)
          end
        end
      end

      class << self
        # Prepends, if the driver is loaded.
        def prepend_to_driver
          Instrument.prepend(Statements, PG::Connection) if defined?(PG::Connection)
        end

        # Public for {Statements}. The result that a block receives is not what the method returns.
        def statement(connection, sql, binds, block, &send)
          name = Databases.name(NAME, connection) { [connection.host, connection.port, connection.db] }
          Drivers.statement(sql, name, binds, block ? RowCount::UNKNOWN : RowCount, &send)
        end

        # Keeps the SQL of a prepared statement, which is executed by its name.
        def keep_text(connection, name, sql)
          return if !Drivers.attached? || connection.frozen?

          texts = connection.instance_variable_get(TEXTS) || connection.instance_variable_set(TEXTS, {})
          texts[name] = sql if texts.size < MOST_TEXTS
        end

        # @return [String] the SQL of a prepared statement; its name if it was prepared before the subscription
        def text(connection, name) = connection.instance_variable_get(TEXTS)&.fetch(name, nil) || "EXECUTE #{name}"
      end
    end
  end
end
