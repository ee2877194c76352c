# frozen_string_literal: true

module Castellan
  class Ledger
    # A ledger for a terminal: drawn by the gem terminal-table (3 or later) where it is installed, else aligned Markdown.
    #
    #   puts TextTables.new(ledger, width: 120)
    #
    # Columns that do not fit into the width are left out, the least telling first; they are in the other outputs.
    class TextTables
      # @return [Boolean] whether terminal-table can be had
      def self.drawn?
        require "terminal-table"
        Terminal::Table::VERSION.to_i >= 3
      rescue LoadError
        false
      end

      DEFAULT_WIDTH = 120
      LEAST_WIDTH = 60
      private_constant :DEFAULT_WIDTH, :LEAST_WIDTH

      # @param width [Integer, nil] characters of a line; nil: those of the terminal, 120 where there is none
      def initialize(ledger, width: nil)
        @ledger = ledger
        @width = [width || terminal_width, LEAST_WIDTH].max
      end

      # @return [String]
      def to_s
        return @ledger.to_markdown unless self.class.drawn?

        "#{@ledger.stories.map { |story, rows| [table(story, rows), *notes(rows)].join("\n") }.join("\n\n")}\n"
      end

      private

      def terminal_width
        require "io/console"
        IO.console&.winsize&.last.to_i.nonzero? || DEFAULT_WIDTH
      rescue SystemCallError
        DEFAULT_WIDTH
      end

      def table(story, rows)
        columns = Columns.of(rows).within(@width, rows)
        Terminal::Table.new(title: plain(story), headings: columns.headings, style: { border: :unicode_round }) do |table|
          rows.each { |row| table << columns.cells(row).map { |cell| plain(cell) } }
          columns.each_with_index { |column, index| table.align_column(index, :right) if column.figures? }
        end
      end

      def notes(rows)
        rows.flat_map { |row| row.remarks.map { |text| "  #{plain(row.step)}: #{plain(text)}" } }
      end

      # Without control characters, which a terminal would obey.
      def plain(text) = text.gsub(/[[:cntrl:]]+/, " ")
    end
  end
end
