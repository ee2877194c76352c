# frozen_string_literal: true

require "json"

module Castellan
  module Plan
    # Holds the result of a plan: for each node its rows, their coders and the links of each relationship.
    #
    #   table = row_set.tables.first
    #   table.rows[0]      # => [1, "ada@example.com", "Ada", nil, "1,2"]   node.columns, then others
    #   table.coders       # => [:integer, :text, :text, :datetime]          one for each of node.columns
    #   table.links        # => [InColumn.new(4), Pairs.new(rows, 0, 1)]     one for each of node.edges
    #
    # `rows` is an array of arrays or a `PG::Result`, with the driver's values.
    # Adapters return it, encoders read it.
    #
    # Coders (driver's value → JSON): `:integer`, `:text`, `:boolean` (true, 1, "t", "1"), `:float`,
    # `:decimal` (a JSON string such as "12.5", as ActiveSupport writes it), `:date`, `:datetime` (UTC text →
    # "2024-01-31T10:00:00.000Z"), `:json` (written unchanged). Without a coder, the adapter fills `computed`.
    class RowSet
      # Links in the parent's row: the column contains nil, one id, or comma-separated ids.
      InColumn = Struct.new(:position)
      # Links in separate rows (an array of arrays or a PG::Result, possibly the related table's own rows), in
      # the document's order: a column with the parent's id and a column with the related id. Polymorphic
      # links have a third column with the position of the type in relationship.definitions.
      Pairs = Struct.new(:rows, :parent_position, :related_position, :kind_position)

      # Links in one row with two PostgreSQL arrays of integers ("{1,1,2}"):
      # parent ids and related ids; nil if empty.
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

      # Values computed for each row. `members` and `edges`: whether each is written, by
      # position. `after` and `edges_after`: JSON of links and meta (`,"links":{…}`) of the
      # resource object and of each relationship.
      Asides = Struct.new(:members, :edges, :after, :edges_after)

      # The rows of one node. `computed` maps a member's position to one JSON string per row.
      # `retype` is called with the position of a column whose coder failed; it returns JSON
      # strings cast by the ORM's type, or nil.
      Table = Struct.new(:node, :rows, :coders, :links, :computed, :asides, :retype, keyword_init: true) do
        # @param pages [Array<Hash, nil>] the member `page` of each row's meta object
        # @return [Table]
        def with_pages(pages)
          after = pages.each_with_index.map { |page, row| with_page(page, asides&.after&.at(row).to_s) }
          dup.tap { |table| table.asides = Asides.new(*(asides || [{}, {}]).first(2), after, asides&.edges_after || {}) }
        end

        private

        # Parses the JSON again only if the resource has its own meta object.
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

      # Frees the driver's memory, which the garbage collector does not count. Nothing can be read afterwards.
      def release
        tables.each do |table|
          drop(table.rows)
          table.links&.each { |link| drop(link.rows) if link.is_a?(Pairs) || link.is_a?(Lists) }
        end
      end

      private

      def drop(rows)
        rows.clear unless rows.is_a?(Array)
      end
    end
  end
end
