# frozen_string_literal: true

require_relative "plain_columns"
require_relative "plain_links"

module Castellan
  module Serialize
    class RubyEncoder
      # The rows of a node that are all written alike: columns of ready texts, with the same constant bytes between them in each row, so
      # that nothing is decided for a value while rows are written.
      #
      #   rows = PlainRows.of(table, section, template)   # nil: they have to be written one by one
      #   rows.write(body, 0)                             # body << '{"type":"users","id":"1",…}'
      #   rows.write_all(body)                            # with commas between them
      #
      # Where a value cannot be written there are none: whoever comes to it one by one says why.
      class PlainRows
        # @param table [Plan::RowSet::Table]
        # @param section [NodeRows] of the table
        # @param template [Template]
        # @return [PlainRows, nil]
        def self.of(table, section, template)
          parts = section.parts
          return if template.nested? || !parts.regular || parts.after || parts.members.any?(&:hole) || section.size.zero?

          new(table, section, template.text)
        rescue Unwritable
          nil
        end

        def initialize(table, section, text)
          @size = section.size
          @columns = PlainColumns.new(table, section, text)
          @texts = []
          @before = []
          @rest = ""
          put(section.parts.open, @columns.ids)
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

        # @param body [String] appended to
        def write_all(body)
          body << @before.first
          write_but_last(body, [*@before.drop(1), "#{@close},#{@before.first}"])
          body << @texts.first[-1]
          @texts.each_with_index { |texts, index| body << @before[index] << texts[-1] if index.positive? }
          body << @close
        end

        private

        # The loops of a document's whole time.
        def write_but_last(body, after)
          columns = @texts
          width = columns.size
          last = @size - 1
          number = 0
          while number < last
            index = 0
            while index < width
              body << columns[index][number] << after[index]
              index += 1
            end
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
          found = PlainLinks.new(edge, links && links[edge.position], @columns)
          put(edge.before, found.column) if edge.before
          found
        end
      end
    end
  end
end
