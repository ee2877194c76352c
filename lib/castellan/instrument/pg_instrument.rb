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

      # Prepended to PG::Connection: each name is a method of its own in the driver, none calls another.
      module Statements
        def exec(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def async_exec(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def sync_exec(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def query(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def async_query(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def exec_params(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def async_exec_params(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def sync_exec_params(sql, *rest) = PgInstrument.attached? ? RawStatement.watch(self, sql, NAME, rest.first) { super } : super
        def exec_prepared(name, *rest) = PgInstrument.attached? ? PgInstrument.prepared(self, name, rest.first) { super } : super
        def async_exec_prepared(name, *rest) = PgInstrument.attached? ? PgInstrument.prepared(self, name, rest.first) { super } : super
        def sync_exec_prepared(name, *rest) = PgInstrument.attached? ? PgInstrument.prepared(self, name, rest.first) { super } : super
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

        # What was prepared before anybody listened has no text but its name.
        def prepared(connection, name, binds, &block)
          text = connection.instance_variable_get(TEXTS)&.fetch(name, nil) || "EXECUTE #{name}"
          RawStatement.watch(connection, text, NAME, binds, &block)
        end
      end
    end
  end
end
