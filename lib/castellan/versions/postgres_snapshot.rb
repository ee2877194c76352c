# frozen_string_literal: true

require "pg"

module Castellan
  module Versions
    # Repeats a version that was read on PostgreSQL while no transaction has ended on the server since.
    #
    #   tables = %w[users roles]
    #   snapshot = PostgresSnapshot.new(PostgresTriggers.current(tables), PostgresTriggers.relations(tables))
    #   snapshot.version(raw, []) { |sql, values| reader.value(raw, sql, values) }   # => String or nil
    #
    # Two statements that see the same transactions see the same rows. PostgreSQL names the transactions that
    # a statement sees (`txid_current_snapshot()`) in a third of the time in which it reads the version, which
    # also checks the triggers. While transactions end between the calls, each call reads the version alone.
    #
    # On a replica, the name does not contain all transactions, so each call reads the version, and so does the
    # first one on another connection than before. Thread-safe; the connections may belong to several servers,
    # databases and roles.
    class PostgresSnapshot
      # Everything on which the version depends, besides its tables. The process is included, because another
      # server after a failover, and the same one after a crash, may have the same transaction ids.
      SEEN = "CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.concat_ws(' ', pg_catalog.pg_postmaster_start_time(), " \
             "pg_catalog.pg_backend_pid(), pg_catalog.txid_current_snapshot(), %s, pg_catalog.quote_ident(current_user), " \
             "pg_catalog.current_setting('search_path')) END"
      # One reading: of the snapshot and the rest of {SEEN}, and of the version.
      Last = Struct.new(:seen, :version)
      NONE = [].freeze
      private_constant :SEEN, :Last, :NONE

      # @param sql [String] SELECT of one text without line feeds, or NULL
      # @param relations [String] SQL of the ids of its tables: PostgreSQL resolves a name by a cache that may be
      #   older than the snapshot, for microseconds after a table or schema was renamed
      def initialize(sql, relations)
        @sql = sql
        seen = format(SEEN, relations)
        @seen = "SELECT #{seen}".freeze
        @both = "SELECT coalesce(#{seen}, '') || E'\\n' || found.version FROM (#{sql}) AS found (version)".freeze
        @last = nil
        @unchanged = false # whether the last two statements saw the same transactions
      end

      # @param raw [PG::Connection]
      # @param values [Array<String>] the same at each call
      # @yieldparam sql [String] to run on the connection
      # @yieldparam values [Array<String>] its parameters
      # @yieldreturn [String, nil] the first value
      # @return [String, nil]
      def version(raw, values)
        # The snapshot of a transaction may be older than the names of the tables.
        return yield(@sql, values) unless raw.transaction_status == PG::PQTRANS_IDLE

        last = @last
        return last.version if @unchanged && yield(@seen, NONE) == last.seen

        seen, _, version = yield(@both, values)&.rpartition("\n")
        @unchanged = !last.nil? && last.seen == seen
        @last = Last.new(seen, version).freeze if seen && !seen.empty?
        version
      end
    end
  end
end
