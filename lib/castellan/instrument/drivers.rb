# frozen_string_literal: true

require_relative "../instrument"
require_relative "pg_instrument"
require_relative "sqlite3_instrument"

module Castellan
  module Instrument
    # Notifies recordings of statements that an application sends through pg or sqlite3 itself. Opt-in, because
    # it prepends to the drivers' classes:
    #
    #   require "castellan/instrument/drivers"
    #
    # Prepended at the first subscription. During a recording, each statement reads ten frames of the stack: the
    # ORMs' statements also come through here, and their own instruments notify of them.
    module Drivers
      ALL = [PgInstrument, Sqlite3Instrument].freeze
      OURS = Regexp.escape(File.dirname(__dir__))
      ORM = %r{/active_record/connection_adapters/|/sequel/(?:adapters|database|connection_pool)\b|\A#{OURS}/(?!instrument/)}
      DRIVER = %r{/sqlite3/(?:database|statement|resultset)\.rb\z|/pg/connection\.rb\z|\A#{OURS}/instrument/}
      private_constant :ALL, :OURS, :ORM, :DRIVER

      class << self
        # @return [Boolean] whether it notifies recordings
        def attached? = @attached || false

        # Prepends to the drivers that are loaded.
        def attach
          ALL.each(&:prepend_to_driver)
          @attached = true
        end

        # Stops notifying; the modules stay prepended.
        def detach
          @attached = false
        end

        # @return [Boolean] whether a recording must be notified of the statement that is being sent
        def observe? = attached? && !Recording.current.nil? && !sender.match?(ORM)

        # Notifies the recording of a statement.
        # @param sql [String]
        # @param name [String] its name, see {Databases}
        # @param binds [Array, nil]
        # @param rows [#call] counts the rows of the driver's result
        # @yield sends it
        # @return what the block returns
        def statement(sql, name, binds, rows = RowCount)
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

        private

        # The drivers' errors; a block that reads the rows may raise others.
        def errors = [(PG::Error if defined?(PG::Error)), (SQLite3::Exception if defined?(SQLite3::Exception))].compact

        # @return [String] the innermost file outside of the drivers and of this room
        def sender
          caller_locations(2, 10).map { |frame| frame.path.to_s }.find { |path| !path.match?(DRIVER) }.to_s
        end
      end
    end
  end
end

Castellan::Instrument.add(Castellan::Instrument::Drivers)
