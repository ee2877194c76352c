# frozen_string_literal: true

module Castellan
  module Rows
    # The statements that one SQLite connection has compiled for rows, so that a text that comes again is not compiled again. Kept by the
    # connection itself and gone with it; SQLite compiles anew by itself what a change of the tables made old.
    #
    #   SqliteStatements.of(raw_connection).rows("SELECT … WHERE id IN (SELECT value FROM json_each(?))", "[1,2]")   # => [[1], [2]]
    #
    # A statement is kept when its text comes the second time, and is no longer reading when its rows are answered. A connection serves
    # one thread at a time, and so does this. Before version 2 of the sqlite3 gem a database cannot be closed while it has statements, so
    # there each is compiled anew.
    class SqliteStatements
      # A plan that is asked for one id and for many has each of its statements twice.
      LIMIT = 200
      # A longer text is written once and not again.
      LONGEST = 4_000
      private_constant :LONGEST

      # @param connection [SQLite3::Database]
      # @param value [String, nil] for the text's one placeholder
      # @param prepared [Boolean] whether the text is one of few that come again
      # @return [Array<Array>]
      # @raise [SQLite3::Exception]
      def self.rows(connection, sql, value, prepared: false)
        return of(connection).rows(sql, value) if prepared

        connection.prepare(sql) do |statement|
          statement.bind_param(1, value) if value
          statement.to_a
        end
      end

      # @param connection [SQLite3::Database]
      # @return [SqliteStatements]
      def self.of(connection)
        connection.instance_variable_get(:@castellan_rows_statements) ||
          connection.instance_variable_set(:@castellan_rows_statements, new(connection))
      end

      # @return [Boolean] whether the installed sqlite3 closes a database together with its statements
      def self.keeps? = SQLite3::VERSION.to_i >= 2

      def initialize(connection)
        @connection = connection
        @longest = self.class.keeps? ? LONGEST : 0
        @kept = {} # text => statement, or false when it came once; the one used least recently first
      end

      # @return [Integer] how many texts are known
      def size
        @kept.size
      end

      # @param value [String, nil] for the text's one placeholder
      # @return [Array<Array>]
      # @raise [SQLite3::Exception]
      def rows(sql, value = nil)
        known = @kept.delete(sql)
        return once(sql, value) if known.nil? || sql.bytesize > @longest

        statement = known || @connection.prepare(sql)
        begin
          answer = run(statement, value)
          kept = keep(sql, statement)
          answer
        ensure
          drop(statement) unless kept # Timeout leaves by `throw`; an open statement would hold its snapshot and its lock
        end
      end

      private

      def once(sql, value)
        @connection.prepare(sql) { |statement| run(statement, value) }.tap { keep(sql, false) if sql.bytesize <= @longest }
      end

      def run(statement, value)
        statement.bind_param(1, value) if value
        answer = []
        while (row = statement.step)
          answer << row
        end
        statement.reset!
        answer
      end

      # Meanwhile the same text may have been kept by a statement that ran within this one.
      def keep(sql, statement)
        drop(@kept.delete(sql)) if @kept.key?(sql)
        drop(@kept.shift.last) if @kept.size >= LIMIT
        @kept[sql] = statement
      end

      def drop(statement)
        statement.close if statement && !statement.closed?
      end
    end
  end
end
