# frozen_string_literal: true

require "json"

module Castellan
  module Plan
    # The result of a plan: for each node its rows, how each column is written, and the links of each relationship. Rows adapters return
    # it and encoders read it.
    #
    #   table = row_set.table(node)
    #   table.rows[0]      # => [1, "ada@example.com", "Ada", nil, "1,2"]   in the order of node.columns, further columns after them
    #   table.coders       # => [:integer, :text, :text, :datetime]          one for each of node.columns
    #   table.links        # => [InColumn.new(4), Pairs.new(rows, 0, 1)]     one for each of node.edges
    #
    # `rows` is an array of arrays or a `PG::Result`, with the driver's values.
    #
    # Coders (driver's value → JSON): `:integer`, `:text`, `:boolean` (true, 1, "t", "1"), `:float`, `:decimal` (a JSON string
    # such as "12.5", as ActiveSupport writes it), `:date`, `:datetime` (UTC text → "2024-01-31T10:00:00.000Z"),
    # `:json` (written as it is). Where no coder fits, the adapter fills `computed` instead.
    class RowSet
      # Links in the parent's row: the column has nil, one id, or ids joined by commas.
      InColumn = Struct.new(:position)
      # Links in rows of their own (an array of arrays or a PG::Result, possibly the rows of the related table itself), in the order of
      # the document: a column with the parent's id and one with the related id. Polymorphic links have a third column with the
      # position of the type in relationship.definitions.
      Pairs = Struct.new(:rows, :parent_position, :related_position, :kind_position)

      # Links in one row of two PostgreSQL arrays of integers ("{1,1,2}"): the parents' ids and the related ids; nil without links.
      Lists = Struct.new(:rows) do
        # @return [String] the related ids
        def related_text = rows.is_a?(Array) ? rows[0][1] : rows.getvalue(0, 1)

        # @return [Array(Array<Integer>, Array<Integer>)]
        def columns
          (rows.is_a?(Array) ? rows[0] : rows.values[0]).map { |text| text ? JSON.parse(text.tr("{}", "[]")) : [] }
        end

        # @return [Pairs]
        def pairs = Pairs.new(columns.reduce(:zip), 0, 1)
      end

      # Computed per row, one value each: `members` and `edges` tell by position whether it is written; `after` and `edges_after` are the
      # bytes of links and meta (`,"links":{…}`) of the resource object and of a relationship.
      Asides = Struct.new(:members, :edges, :after, :edges_after)

      # `computed` maps the position of a member to an Array with one JSON String per row. `retype` is called with such a position where
      # a coder cannot write a value; it returns the column written by the ORM's type, as in `computed`, or nil.
      Table = Struct.new(:node, :rows, :coders, :links, :computed, :asides, :retype, keyword_init: true) do
        # @param pages [Array<Hash, nil>] the member `page` of each row's meta object
        # @return [Table]
        def with_pages(pages)
          after = pages.each_with_index.map { |page, row| with_page(page, asides&.after&.at(row).to_s) }
          dup.tap { |table| table.asides = Asides.new(*(asides || [{}, {}]).first(2), after, asides&.edges_after || {}) }
        end

        private

        # Only a resource with a meta object of its own needs to have it read again.
        def with_page(page, text)
          return text unless page
          return "#{text},\"meta\":#{JSON.generate("page" => page)}" unless node.definition.meta

          around = JSON.parse("{#{text.delete_prefix(",")}}")
          ",#{JSON.generate(around.merge("meta" => { **around["meta"].to_h, "page" => page }))[1..-2]}"
        end
      end

      # @return [Array<Table>] in the order of plan.nodes; the first is the primary data
      attr_reader :tables

      def initialize(tables)
        @tables = tables
        freeze
      end

      # Frees the driver's memory, whose size the garbage collector does not see. Nothing can be read afterwards.
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
