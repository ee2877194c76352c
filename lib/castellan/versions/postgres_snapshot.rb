# frozen_string_literal: true

require "pg"

module Castellan
  module Versions
    # Repeats a version that was read on PostgreSQL while no transaction has ended on the server since.
    #
    #   snapshot = PostgresSnapshot.new(PostgresTriggers.current(%w[users roles]))
    #   snapshot.version(raw, []) { |sql, values| reader.value(raw, sql, values) }   # => String or nil
    #
    # Two statements that see the same transactions see the same rows. PostgreSQL names the transactions that
    # a statement sees (`txid_current_snapshot()`) in a third of the time in which it reads the version, which
    # also checks the triggers. While transactions end between the calls, each call reads the version alone.
    #
    # On a replica, the name does not contain all transactions; there each call reads the version. Thread-safe;
    # the connections may belong to several servers, databases and roles.
    class PostgresSnapshot
      # What the version depends on apart from the snapshot: the server (another one may have the same
      # transaction ids after a failover), and what resolves the names of the tables.
      SEEN = "CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.concat_ws(' ', pg_catalog.pg_postmaster_start_time(), " \
             "pg_catalog.current_database(), current_user, pg_catalog.pg_my_temp_schema(), pg_catalog.txid_current_snapshot(), " \
             "pg_catalog.current_setting('search_path')) END"
      SELECT_SEEN = "SELECT #{SEEN}".freeze
      # What was seen, and the version then.
      Last = Struct.new(:seen, :version)
      NONE = [].freeze
      private_constant :SEEN, :SELECT_SEEN, :Last, :NONE

      # @param sql [String] SELECT of one text without line feeds, or NULL
      def initialize(sql)
        @sql = sql
        @both = "SELECT coalesce(#{SEEN}, '') || E'\\n' || found.version FROM (#{sql}) AS found (version)".freeze
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
        return yield(@sql, values) unless raw.transaction_status == PG::PQTRANS_IDLE # its snapshot may be older than the names of tables

        last = @last
        return last.version if @unchanged && yield(SELECT_SEEN, NONE) == last.seen

        seen, _, version = yield(@both, values)&.rpartition("\n")
        @unchanged = !last.nil? && last.seen == seen
        @last = Last.new(seen, version).freeze if seen && !seen.empty?
        version
      end
    end
  end
end
