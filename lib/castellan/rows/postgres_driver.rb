# frozen_string_literal: true

require "pg"

module Castellan
  module Rows
    # What rows ask of the pg gem, for ActiveRecord's and Sequel's connections alike.
    #
    #   PostgresDriver.rows(connection, "SELECT … WHERE user_id = ANY($1::bigint[])", [1, 2])   # => PG::Result, values as text
    #   PostgresDriver.rows(connection, sql, [1, 2], prepared: true)                            # kept by the connection
    #
    # Only for one value of ids a statement; what has others is an ORM's own.
    module PostgresDriver
      LOOSE_COLLATIONS = "SELECT collname FROM pg_catalog.pg_collation WHERE NOT collisdeterministic"
      TEXTS = PG::TypeMapAllStrings.new.freeze
      INTEGER_IDS = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::Integer.new.freeze).freeze
      TEXT_IDS = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::String.new.freeze).freeze
      # A prepared statement may come to be planned once for all lists, as if each had ten ids: not for longer ones, unless an index
      # finds each of them. Then that saves the planner from weighing every id of the list, which costs as much as finding the rows.
      MANY_IDS = 100
      MOST_IDS = 2_000
      # A longer text is written once and not again (ids in it, most often), and not kept on either side.
      LONGEST = 4_000
      NONE = [].freeze
      private_constant :TEXTS, :INTEGER_IDS, :TEXT_IDS, :MANY_IDS, :MOST_IDS, :LONGEST, :NONE

      module_function

      # @param connection [PG::Connection]
      # @param ids [Array<Integer, String>, nil]
      # @param prepared [Boolean] whether the text is one of few that come again
      # @param indexed [Boolean] whether an index finds the rows of one id
      # @return [PG::Result]
      # @raise [PG::Error]
      def rows(connection, sql, ids, prepared: false, indexed: false)
        values = values(ids)
        prepared &&= prepares?(sql, ids, indexed)
        result = prepared ? PreparedStatements.of(connection).exec(sql, values) : connection.exec_params(sql, values)
        texts(result)
      ensure
        InterruptedConnection.uninterrupted { recover(connection) } unless result
      end

      # @return [Array<String>] what goes with the text
      def values(ids)
        ids ? [bind(ids)] : NONE
      end

      # @return [Boolean] whether a text that comes again is to be prepared for so many ids
      def prepares?(sql, ids, indexed)
        sql.bytesize <= LONGEST && (ids.nil? || ids.size <= (indexed ? MOST_IDS : MANY_IDS))
      end

      # @param result [PG::Result]
      # @return [PG::Result] whose values are read as text, whatever the connection's own types are
      def texts(result)
        result.type_map = TEXTS
        result
      end

      # After an interrupt a statement still runs, and whoever used the connection next would wait for it.
      def recover(connection)
        return if connection.finished? || connection.transaction_status != PG::PQTRANS_ACTIVE

        InterruptedConnection.recover(connection) { |answers|
          nil while answers.get_result
          true
        }
      end

      # @return [String] the ids as text of an array
      def bind(ids)
        (ids.first.is_a?(Integer) ? INTEGER_IDS : TEXT_IDS).encode(ids)
      end
    end
  end
end
