# frozen_string_literal: true

module Castellan
  module Demo
    class Ledger
      # Formats a ledger as GitHub-flavoured Markdown: a table per story, with findings and reasons below.
      #
      #   MarkdownTables.new(ledger).to_s # => "## users\n\n| step | ms | …"
      #
      # Aligns the columns, so that the tables are readable in a terminal, too.
      class MarkdownTables
        # @param width [Integer, nil] the maximum length of a line in characters; nil includes all columns
        def initialize(ledger, width: nil)
          @ledger = ledger
          @width = width
        end

        # @return [String]
        def to_s
          [*@ledger.stories.map { |story, rows| story(story, rows) }, legend].join("\n")
        end

        private

        def story(name, rows)
          ["## #{escaped(name)}\n", *table(rows), "", *notes(rows)].join("\n")
        end

        def table(rows)
          columns = Columns.of(rows)
          columns = columns.within(@width, rows) if @width
          lines = [columns.headings, *rows.map { |row| columns.cells(row) }].map { |cells| cells.map { |cell| escaped(cell) } }
          widths = lines.transpose.map { |cells| [3, *cells.map(&:length)].max }
          lines.map! { |cells| line(cells.zip(columns, widths).map { |cell, column, width| aligned(cell, column, width) }) }
          lines.insert(1, line(columns.zip(widths).map { |column, width| column.figures? ? "#{"-" * (width - 1)}:" : "-" * width }))
        end

        def line(cells) = "| #{cells.join(" | ")} |"

        def aligned(cell, column, width)
          column.figures? ? cell.rjust(width) : cell.ljust(width)
        end

        def notes(rows)
          notes = rows.flat_map { |row| row.remarks.map { |text| "- #{escaped(row.step)}: #{escaped(text)}" } }
          notes.any? ? [*notes, ""] : []
        end

        def legend
          "told: the account's own figure, from its machine. verdict: against the step whose answer it must equal, or else the last " \
            "one that was not wrong, by req/s or else ms; the same within #{Figures.percent(@ledger.tolerance * 100)}.\n"
        end

        def escaped(text)
          text.gsub(/[|\\]/) { |mark| "\\#{mark}" }.gsub("<", "&lt;").gsub(/[[:cntrl:]]+/, " ")
        end
      end
    end
  end
end
