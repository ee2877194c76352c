# frozen_string_literal: true

module Castellan
  module Demo
    class Ledger
      # Selects the columns of a story's table: those with a figure in at least one step.
      #
      #   columns = Columns.of(rows)
      #   columns.headings      # => ["step", "ms", "told", "verdict", "SQL ms", "queries"]
      #   columns.cells(row)    # => ["baseline", "812", "7,795", "", "30.1", "1,139"]
      #   columns.within(80, rows) # the first columns that fit into 80 characters, most important first
      class Columns
        # The field, heading and meaning of a column, and the method of {Figures} that formats it, or nil.
        Column = Struct.new(:field, :heading, :meaning, :figure) do
          # @return [String]
          def cell(row)
            value = row[field]
            return value.to_s if value.nil? || figure.nil?

            Figures.public_send(figure, value)
          end

          def figures? = !figure.nil?
        end

        ALL = [
          Column.new(:step, "step", "what was done"),
          Column.new(:requests_per_s, "req/s", "successful requests a second", :number),
          Column.new(:duration_ms, "ms", "duration of one warm request", :number),
          Column.new(:story_value, "told", "the account's own figure, from its machine", :number),
          Column.new(:verdict, "verdict", "against the step whose answer it must equal"),
          Column.new(:sql_ms, "SQL ms", "of which in the database", :number),
          Column.new(:queries, "queries", "SQL queries", :number),
          Column.new(:allocated_objects, "objects", "allocated objects", :number),
          Column.new(:allocated_bytes, "allocated", "allocated bytes", :bytes),
          Column.new(:response_bytes, "response", "size of the answer", :bytes),
          Column.new(:mean_ms, "mean ms", "mean response time", :number),
          Column.new(:p50_ms, "p50 ms", "half of the requests took no longer", :number),
          Column.new(:p95_ms, "p95 ms", "95 % of the requests took no longer", :number),
          Column.new(:p99_ms, "p99 ms", "99 % of the requests took no longer", :number),
          Column.new(:max_ms, "longest ms", "longest response time", :number),
          Column.new(:availability, "available", "part of the requests that succeeded", :percent),
          Column.new(:transferred_bytes, "data", "bodies received", :bytes),
          Column.new(:min_ms, "shortest ms", "shortest response time", :number),
          Column.new(:concurrency, "concurrency", "requests under way on average", :number),
          Column.new(:retained_objects, "retained objects", "objects that outlive the request", :number),
          Column.new(:retained_bytes, "retained", "bytes that outlive the request", :bytes)
        ].freeze
        private_constant :ALL

        include Enumerable

        # @param rows [Array<Row>] the rows of one story
        # @return [Columns]
        def self.of(rows)
          new(ALL.select { |column| rows.any? { |row| row[column.field] } })
        end

        def initialize(columns)
          @columns = columns
          freeze
        end

        def each(&block) = @columns.each(&block)

        # @return [Array<String>]
        def headings = map(&:heading)

        # @param width [Integer] the maximum length of a line in characters
        # @param rows [Array<Row>]
        # @return [Columns] the first columns that fit, with separators of three characters, but at least one
        def within(width, rows)
          ends = @columns.map { |column| [column.heading, *rows.map { |row| column.cell(row) }].map(&:length).max + 3 }
                         .each_with_object([]) { |wide, sums| sums << (sums.last || 1) + wide }
          self.class.new(@columns.first([ends.count { |right| right <= width }, 1].max))
        end

        # @return [Array<String>]
        def cells(row) = map { |column| column.cell(row) }
      end
    end
  end
end
