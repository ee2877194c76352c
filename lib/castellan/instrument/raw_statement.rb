# frozen_string_literal: true

module Castellan
  module Instrument
    # A statement that is sent on a driver's own connection: told, unless an ORM sends it, which tells of it itself.
    #
    #   RawStatement.unknown?(connection) ? RawStatement.tell(sql, "pg", params) { super } : super
    #
    # Who sends it is read from the stack. A connection on which an ORM was seen is not asked about again, so the statements
    # of an ORM cost one look at a variable of the connection; one that ActiveRecord has lent (`raw_connection`) is asked about
    # each time.
    module RawStatement
      OURS = Regexp.escape(File.dirname(__dir__))
      ORM = %r{/active_record/connection_adapters/|/sequel/(?:adapters|database|connection_pool)\b|\A#{OURS}/(?!instrument/)}
      DRIVER = %r{/sqlite3/(?:database|statement|resultset)\.rb\z|/pg/connection\.rb\z|\A#{OURS}/instrument/}
      OWNER = :@castellan_owner
      private_constant :OURS, :ORM, :DRIVER, :OWNER

      # Prepended to ActiveRecord's adapters.
      module Lent
        def raw_connection
          super.tap { |connection| RawStatement.lent(connection) }
        end
      end

      class << self
        # @param connection [Object] the driver's
        # @return [Boolean] whether somebody records, and no ORM tells of what is sent now
        def unknown?(connection) = !Recording.current.nil? && !orms?(connection)

        # @param sql [String]
        # @param name [String] what to call it
        # @param binds [Array, Hash, nil]
        # @param rows [#call] what the rows are, by what the driver answers
        # @yield sends it
        # @return what the driver answers
        def tell(sql, name, binds, rows = RowCount)
          started = Clock.monotonic_ns
          begin
            answer = yield
          rescue *refusals
            Recording.current&.failed
            raise
          ensure
            Recording.current&.query(sql, name, started, Clock.monotonic_ns - started, false, rows.call(answer), list(binds))
          end
        end

        # Told when ActiveRecord hands out the connection: from then on it has two users.
        def lent(connection)
          connection.instance_variable_set(OWNER, :lent) unless connection.frozen?
        end

        # Public for the load hook of ActiveRecord.
        def prepend_lent
          adapter = ActiveRecord::ConnectionAdapters::AbstractAdapter
          adapter.prepend(Lent) unless adapter.include?(Lent)
        end

        # @return [Array<Class>] what the drivers raise; other errors are raised by who reads the rows
        def refusals = [(PG::Error if defined?(PG::Error)), (SQLite3::Exception if defined?(SQLite3::Exception))].compact

        private

        def list(binds)
          binds = binds.values if binds.is_a?(Hash)
          binds if binds.is_a?(Array)
        end

        def orms?(connection)
          owner = connection.instance_variable_get(OWNER)
          return true if owner == :orm

          orm = sender.match?(ORM)
          connection.instance_variable_set(OWNER, :orm) if orm && owner.nil? && !connection.frozen?
          orm
        end

        # The first file that is not the driver's or this room's.
        def sender
          caller_locations(3, 10).map { |frame| frame.path.to_s }.find { |path| !path.match?(DRIVER) }.to_s
        end
      end
    end
  end
end
