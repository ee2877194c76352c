# frozen_string_literal: true

module Castellan
  module Serialize
    class RubyEncoder
      # The links of one relationship, row by row: the bytes of each linked id, or of each nested record, are made once, however many
      # rows are linked to it.
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
        # @param nested [PlainRows, nil] the related rows, where they are written in place of linkage
        # @raise [Unwritable]
        def initialize(edge, link, columns, nested = nil)
          @edge = edge
          @columns = columns
          @nested = nested
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

        # @return [String, nil] nil where a record that would be nested is not there
        def fragment(id)
          return @nested.text_of(id) if @nested

          text = Values.id(id)
          fragment = "#{@edge.link}#{id.is_a?(Integer) ? "\"#{text}\"" : @columns.text.quoted(text)}#{@edge.link_end}"
          @ids[fragment] = text
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
            next @written[value]&.then { |fragment| [fragment] } unless @edge.to_many && value.is_a?(String)

            found = Values.id(value).split(",")
            found.delete("")
            found = found.filter_map { |id| @written[id] }
            found unless found.empty?
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

        # @return [Hash{Object => Array<String>}] by parent
        def lists(parents, related)
          parents, related = without_nothing(parents, related) unless related.all? && parents.all?
          lists = pieces(parents, related.map(&@written))
          lists.each_value { |found| found.slice!(1..) } unless @edge.to_many
          @nested ? lists.each_value(&:compact!).delete_if { |_, found| found.empty? } : lists
        end

        # Most links come parent by parent: theirs are a piece of the list.
        def pieces(parents, fragments)
          pieces = {}
          index = 0
          while index < parents.size
            parent = parents[first = index]
            index += 1 while parents[index] == parent
            piece = fragments[first, index - first]
            pieces[parent] = pieces[parent] ? pieces[parent] + piece : piece
          end
          pieces
        end

        def without_nothing(parents, related)
          pairs = parents.zip(related).select(&:all?)
          [pairs.map(&:first), pairs.map(&:last)]
        end
      end
    end
  end
end
