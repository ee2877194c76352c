# frozen_string_literal: true

module Castellan
  module Serialize
    class RubyEncoder
      # The linkage of one relationship, row by row: the bytes of each linked id are made once, however many rows are linked to it.
      #
      #   links = PlainLinks.new(edge, table.links[0], columns)
      #   links.column.texts   # => ['{"type":"roles","id":"3"},{"type":"roles","id":"4"}', "", …] between "[" and "]"
      #   links.ids(0)         # => ["3", "4"]
      class PlainLinks
        NOTHING = [].freeze
        private_constant :NOTHING

        # @param edge [Template::EdgeParts]
        # @param link [Object, nil] see {Plan::RowSet::Table}
        # @param columns [PlainColumns]
        # @raise [Unwritable]
        def initialize(edge, link, columns)
          @edge = edge
          @columns = columns
          @ids = {}.compare_by_identity
          @written = Hash.new { |written, id| written[id] = fragment(id) }
          @rows = rows(link)
        end

        # @return [PlainColumns::Column]
        def column
          return PlainColumns::Column.new(@rows.map { |found| found ? found.first : "null" }, "", "") unless @edge.to_many

          PlainColumns::Column.new(@rows.map { |found| found ? found.join(",") : "" }, "[", "]")
        end

        # @return [Array<String>] the related ids of a row, in the order in which they are written
        def ids(number)
          found = @rows[number]
          found ? found.map { |fragment| @ids[fragment] } : NOTHING
        end

        # @return [Integer] how many different ids there are in all rows
        def distinct
          @ids.size
        end

        private

        def fragment(id)
          id = Values.id(id)
          fragment = "#{@edge.link}#{@columns.text.quoted(id)}#{@edge.link_end}"
          @ids[fragment] = id
          fragment
        end

        # @return [Array<Array<String>, nil>] for each row its fragments; nil where there are none
        def rows(link)
          case link
          when nil then Array.new(@columns.size)
          when Plan::RowSet::InColumn then in_column(link)
          else grouped(link)
          end
        end

        def in_column(link)
          @columns.values(link.position).map do |value|
            next if value.nil? || value == ""
            next [@written[value]] unless @edge.to_many && value.is_a?(String)

            found = Values.id(value).split(",")
            found.delete("")
            found.map { |id| @written[id] } unless found.empty?
          end
        end

        def grouped(link)
          own, parents, related = by_number(link) || by_text(link)
          lists = lists(parents, related)
          own.map { |id| lists[id] }
        end

        # @return [Array(Array, Array, Array), nil] the ids of the rows, those of the links' parents and the related ones
        def by_number(link)
          own = @columns.id_numbers or return
          found = link.is_a?(Plan::RowSet::Lists) ? link.columns : PlainColumns.numbers(link.rows, positions(link))
          [own, *found] if found
        end

        # Ids compare by their text.
        def by_text(link)
          parents, related = link.is_a?(Plan::RowSet::Lists) ? link.columns : positions(link).map { |at| NodeRows.column(link.rows, at) }
          texts = Hash.new { |known, id| known[id] = Values.id(id) }
          [@columns.id_texts, parents.map { |id| texts[id] }, related.map { |id| id unless id == "" }]
        end

        def positions(link)
          [link.parent_position, link.related_position]
        end

        # Most links come parent by parent.
        def lists(parents, related)
          lists = {}
          many = @edge.to_many
          last = list = nil
          related.each_with_index do |id, index|
            parent = parents[index]
            next if id.nil? || parent.nil?

            list = lists[last = parent] ||= [] if parent != last
            list << @written[id] if many || list.empty?
          end
          lists
        end
      end
    end
  end
end
