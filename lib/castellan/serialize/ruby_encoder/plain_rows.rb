# frozen_string_literal: true

require_relative "plain_columns"
require_relative "plain_links"

module Castellan
  module Serialize
    class RubyEncoder
      # The rows of a node that are all written alike: columns of ready texts, with the same constant bytes between them in each row, so
      # that nothing is decided for a value while rows are written.
      #
      #   rows = PlainRows.of(table, section, template) { |index| … }   # nil: they have to be written one by one
      #   rows.write(body, 0)                             # body << '{"type":"users","id":"1",…}'
      #   rows.write_all(body)                            # with commas between them
      #
      # Where a value cannot be written there are none: whoever comes to it one by one says why.
      class PlainRows
        # @param table [Plan::RowSet::Table]
        # @param section [NodeRows] of the table
        # @param template [Template]
        # @yieldparam index [Integer] of a related node in the template
        # @yieldreturn [PlainRows, nil] its rows, asked for where they are nested
        # @return [PlainRows, nil]
        def self.of(table, section, template, &related)
          parts = section.parts
          return if !parts.regular || parts.after || parts.members.any?(&:hole)

          new(table, section, template, related)
        rescue Unwritable
          nil
        end

        def initialize(table, section, template, related)
          @size = section.size
          @columns = PlainColumns.new(table, section, template.text)
          @related = template.nested? ? related : nil
          @texts = []
          @before = []
          @rest = ""
          put(section.parts.open, @related ? @columns.nested_ids : @columns.ids)
          section.parts.members.each_with_index { |member, position| put(member.before, @columns.member(member, position)) }
          @links = section.parts.edges.to_h { |edge| [edge, put_links(edge, table.links)] }.compare_by_identity
          @close = "#{@rest}#{section.parts.close}"
        end

        # @param edge [Template::EdgeParts]
        # @return [PlainLinks]
        def links(edge)
          @links.fetch(edge)
        end

        # @param body [String] appended to
        # @param number [Integer] of the row
        def write(body, number)
          @texts.each_with_index { |texts, index| body << @before[index] << texts[number] }
          body << @close
        end

        # @param id [Object] a linked one, as the driver gave it
        # @return [String, nil] the row with this id; nil where there is none
        def text_of(id)
          number = @columns.number_of(id)
          number && write(+"", number)
        end

        # @param body [String] appended to
        def write_all(body)
          return if @size.zero?

          body << @before.first
          write_but_last(body, [*@before.drop(1), "#{@close},#{@before.first}"])
          body << @texts.first[-1]
          @texts.each_with_index { |texts, index| body << @before[index] << texts[-1] if index.positive? }
          body << @close
        end

        private

        # The loops of a document's whole time: two columns at a time are quicker than one.
        def write_but_last(body, after)
          columns = @texts
          width = columns.size
          pairs = width - (width % 2)
          last = @size - 1
          number = 0
          while number < last
            index = 0
            while index < pairs
              body << columns[index][number] << after[index] << columns[index + 1][number] << after[index + 1]
              index += 2
            end
            body << columns[index][number] << after[index] if index < width
            number += 1
          end
        end

        # What stands around each value of a column is constant as well.
        def put(before, column)
          @before << "#{@rest}#{before}#{column.open}"
          @texts << column.texts
          @rest = column.close
        end

        def put_links(edge, links)
          nested = @related && (@related.call(edge.child) || raise(Unwritable.new(:text, nil))) # which is then written row by row
          found = PlainLinks.new(edge, links && links[edge.position], @columns, nested)
          put(edge.before, found.column) if edge.before
          found
        end
      end
    end
  end
end
