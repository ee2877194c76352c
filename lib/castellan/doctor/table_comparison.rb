# frozen_string_literal: true

require_relative "../clock"

module Castellan
  module Doctor
    # Finds tables that changed although every request was rolled back.
    #
    #   comparison = TableComparison.new(Sandbox.connected)
    #   examine
    #   comparison.changes   # => ["authors: 3 rows before, 9 after"]
    #
    # Compares the number of rows and, in tables of up to 10,000 rows, the values. Stops reading after two
    # seconds; {#left_out} is the number of tables that it did not read.
    class TableComparison
      MOST_ROWS = 10_000
      BUDGET_NS = 2_000_000_000
      private_constant :MOST_ROWS, :BUDGET_NS

      # @return [Integer] the number of compared tables; the number of tables that were not read
      attr_reader :size, :left_out

      # @param databases [Array] see {Sandbox.connected}
      def initialize(databases)
        @before = read(databases.flat_map { |database| names(database).map { |table| [database, table] } })
        @size = @before.size
      end

      # @return [Array<String>] a sentence for each changed table
      def changes
        after = read(@before.keys)
        @before.filter_map { |(database, table), before| change(table, before, after[[database, table]]) }
      end

      private

      def read(tables)
        ends_ns = Clock.monotonic_ns + BUDGET_NS
        found = {}
        tables.each { |key| found[key] = state(*key) if Clock.monotonic_ns < ends_ns }
        @left_out = tables.size - found.size
        found.compact
      end

      def names(database)
        database.tables.sort
      rescue LoadError, StandardError
        [] # unreachable; the first request raises a better error
      end

      # @return [Array(Integer, Integer), nil] the number of rows and a hash of the rows in any order; nil if
      #   unreadable
      def state(database, table)
        rows = database.contents(table, MOST_ROWS + 1)
        return [database.rows(table), nil] if rows.size > MOST_ROWS

        [rows.size, rows.sum { |row| row.map(&:to_s).hash }]
      rescue StandardError
        nil # no permission to read this table
      end

      def change(table, before, after)
        return if after.nil? || before == after
        return "#{table}: #{before.first} rows before, #{after.first} after" unless before.first == after.first

        "#{table}: #{after.first} rows, with other values"
      end
    end
  end
end
