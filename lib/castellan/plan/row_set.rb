# frozen_string_literal: true

require "json"

module Castellan
  module Plan
    # What came back for a plan: for each node its rows, how to write each column, and the links of each relationship.
    # What a rows adapter returns and what an encoder reads; neither knows the other.
    #
    #   table = row_set.table(node)
    #   table.rows[0]      # => [1, "ada@example.com", "Ada", nil, "1,2"]   in the order of node.columns, further columns after them
    #   table.coders       # => [:integer, :text, :text, :datetime]          one for each of node.columns
    #   table.links        # => [InColumn.new(4), Pairs.new(rows, 0, 1)]     one for each of node.edges
    #
    # `rows` is an array of arrays or a `PG::Result`; values are what the driver gave.
    #
    # Coders (driver's value → JSON): `:integer`, `:text`, `:boolean` (true, 1, "t", "1"), `:float`, `:decimal` (a JSON string
    # such as "12.5", as ActiveSupport writes it), `:date`, `:datetime` (UTC text → "2024-01-31T10:00:00.000Z"),
    # `:json` (written as it is). An adapter that cannot say which leaves the column out and fills `computed`.
    class RowSet
      # The links are in the parent's row: its column holds nil, one id, or ids joined by commas.
      InColumn = Struct.new(:position)
      # The links are in rows of their own (an array of arrays or a PG::Result, and possibly the very rows of the related
      # table): a column with the parent's id and one with the related id, in the order in which they are written. Links to several
      # types have a third, with the position of the type in relationship.definitions.
      Pairs = Struct.new(:rows, :parent_position, :related_position, :kind_position)

      # The same in one row: an array of the parents' ids and one of the related ids, integers as PostgreSQL writes them ("{1,1,2}"); both
      # nil where there is no link.
      Lists = Struct.new(:rows) do
        # @return [String] the related ids
        def related_text
          rows.is_a?(Array) ? rows[0][1] : rows.getvalue(0, 1)
        end

        # @return [Array(Array<Integer>, Array<Integer>)]
        def columns
          (rows.is_a?(Array) ? rows[0] : rows.values[0]).map { |text| text ? JSON.parse(text.tr("{}", "[]")) : [] }
        end

        # @return [Pairs]
        def pairs
          Pairs.new(columns.reduce(:zip), 0, 1)
        end
      end

      # What is decided or added for each row, one value a row: `members` and `edges` say for a position whether it is written, `after`
      # and `edges_after` hold the ready bytes of links and meta (`,"links":{…}`), of the resource object and of a relationship.
      Asides = Struct.new(:members, :edges, :after, :edges_after)

      # `computed` maps the position of a member in node.members to an array with one JSON String a row; `asides` is nil where the
      # node has none. `retype` is called with such a position where a coder does not know a value, and answers what the ORM's type makes
      # of the whole column, as in `computed`, or nil.
      Table = Struct.new(:node, :rows, :coders, :links, :computed, :asides, :retype, keyword_init: true)

      # @return [Array<Table>] in the order of plan.nodes; the first is the primary data
      # @return [Integer, nil] how many there are in all, when the plan asked for a count
      attr_reader :tables, :total

      def initialize(tables, total: nil)
        @tables = tables
        @total = total
        freeze
      end

      # Gives the driver's memory back: the garbage collector does not see in time how much that is. Nothing can be read afterwards.
      def release
        tables.each do |table|
          drop(table.rows)
          table.links&.each { |link| drop(link.rows) if link.is_a?(Pairs) || link.is_a?(Lists) }
        end
      end

      # @param node [Node]
      # @return [Table]
      def table(node)
        tables.find { |table| table.node.equal?(node) } or raise KeyError, "no table of #{node.path.inspect}"
      end

      private

      def drop(rows)
        rows.clear unless rows.is_a?(Array)
      end
    end
  end
end
