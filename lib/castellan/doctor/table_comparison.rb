# frozen_string_literal: true

require_relative "../clock"

module Castellan
  module Doctor
    # Finds tables that changed although every request was rolled back: their rows before and after, in number and, of tables with at most
    # 10,000 rows, in value.
    #
    #   comparison = TableComparison.new(Databases.connected)
    #   examine
    #   comparison.changes   # => ["authors: 3 rows before, 9 after"]
    #
    # Reads for two seconds at the most each time; {#left_out} counts the tables that were not reached then.
    class TableComparison
      MOST_ROWS = 10_000
      BUDGET_NS = 2_000_000_000
      private_constant :MOST_ROWS, :BUDGET_NS

      # @return [Integer] tables that are compared, and that are not
      attr_reader :size, :left_out

      # @param databases [Array] see {Databases.connected}
      def initialize(databases)
        @databases = databases
        @before = read(databases.flat_map { |database| names(database).map { |table| [database, table] } })
        @size = @before.size
      end

      # @return [Array<String>] what changed, in words
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
        [] # it does not answer, which the first request says better
      end

      # @return [Array(Integer, Integer), nil] how many rows, and a sum of their values, in whatever order they come
      def state(database, table)
        rows = database.contents(table, MOST_ROWS + 1)
        return [database.rows(table), nil] if rows.size > MOST_ROWS

        [rows.size, rows.sum { |row| row.map(&:to_s).hash }]
      rescue StandardError
        nil # a table that may not be read
      end

      def change(table, before, after)
        return if after.nil? || before == after
        return "#{table}: #{before.first} rows before, #{after.first} after" unless before.first == after.first

        "#{table}: #{after.first} rows, with other values"
      end
    end
  end
end
