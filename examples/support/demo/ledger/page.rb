# frozen_string_literal: true

require "digest"
require "erb"
require "json"

module Castellan
  module Demo
    class Ledger
      # Renders the report as a standalone HTML page that contains its styles, scripts and chart library.
      #
      #   Page.new(report, root: "..").to_s # => "<!DOCTYPE html>…"
      #
      # Its Content-Security-Policy allows only these scripts and styles, by hash. Chart.js
      # (examples/support/chartjs) draws the charts; tables have the same figures. The template must escape
      # every value with `h`.
      class Page
        HERE = File.join(__dir__, "page")
        CHART_LIBRARY = File.expand_path("../../chartjs/chart.umd.min.js", __dir__)
        UNITS = { requests_per_s: "requests a second", duration_ms: "ms" }.freeze
        MARKS = { "better" => "▲", "same" => "=", "worse" => "▼", "wrong" => "✕" }.freeze
        STATE_MARKS = { true => "✓", false => "✕", nil => "–" }.freeze
        private_constant :HERE, :CHART_LIBRARY, :UNITS, :MARKS, :STATE_MARKS

        # @param report [ReportFiles]
        # @param root [String] the relative path from the page to the source code
        def initialize(report, root:)
          @report = report
          @ledger = report.ledger
          @root = root
        end

        # @return [String]
        def to_s
          ERB.new(file("page.html.erb"), trim_mode: "-").result(binding)
        end

        private

        def h(value) = ERB::Util.html_escape(value.to_s)

        # Converts `code` like Markdown does.
        def with_code(text) = h(text).gsub(/`([^`]+)`/, '<code>\1</code>')

        def file(name) = File.read(File.join(HERE, name), encoding: "UTF-8")

        def style = @style ||= "\n#{file("page.css")}"

        # Without the source map comment, because browsers would request the file.
        def library = @library ||= File.read(CHART_LIBRARY, encoding: "UTF-8").sub(%r{^//# sourceMappingURL=.*\n?}, "")

        def script = @script ||= "\n#{file("page.js")}"

        def policy
          scripts = [library, script].map { |source| hash_of(source) }.join(" ")
          "default-src 'none'; script-src #{scripts}; style-src #{hash_of(style)}; base-uri 'none'; form-action 'none'"
        end

        def hash_of(source) = "'sha256-#{Digest::SHA256.base64digest(source)}'"

        def stories = @ledger.stories

        def about(story) = @report.stories.fetch(story, {})

        def title_of(story) = about(story)[:title] || story

        def anchor(story) = "story-#{stories.keys.index(story)}"

        # Returns the first correct step, the headline step of the story (or else the best one), and the
        # factor between them.
        def before_and_after(story, rows)
          right = rows.select { |row| row.step? && !row.wrong? && row.leading }
          first = right.first or return
          best = right.find { |row| row.step == about(story)[:headline] } || right.max_by { |row| Verdict.factor(row, first) || 0 }
          [first, best, Verdict.factor(best, first)]
        end

        def leading(row)
          "#{Figures.number(row[row.leading])} #{row.leading == :duration_ms ? "ms" : "req/s"}"
        end

        def mark(verdict) = MARKS.fetch(verdict)

        def state(target) = ReportFiles::STATES.fetch(target[:reached])

        def state_mark(target) = STATE_MARKS.fetch(target[:reached])

        # The path is encoded after "../", so that `code:` cannot link to anything but source code.
        def code_link(code)
          path = code.sub(/:\d+\z/, "")
          "#{@root}/#{path.split("/").reject(&:empty?).map { |part| ERB::Util.url_encode(part) }.join("/")}"
        end

        def with_remarks(rows) = rows.select { |row| row.remarks.any? || row.command }

        # A wrong step shows its reason in a separate element.
        def texts(row) = row.remarks.drop(row.wrong? ? 1 : 0)

        # The environments that differ from the report's.
        def row_environments(rows)
          rows.filter_map(&:environment).uniq - [@report.environment]
        end

        def environment_text(environment)
          environment.is_a?(Hash) ? environment.map { |name, value| "#{name} #{value}" }.join(", ") : environment
        end

        # Escapes `<`, so that the JSON cannot end its script element (JSON allows \u003c in strings).
        def chart_data
          JSON.generate(stories.filter_map { |story, rows| chart(story, rows) }).gsub("<", "\\u003c").gsub("\u2028", "\\u2028")
        end

        def chart(story, rows)
          rows = rows.select { |row| row.leading && row[row.leading].positive? }
          return if rows.empty?

          { id: anchor(story), unit: UNITS.fetch(rows.first.leading), less: rows.first.leading == :duration_ms, steps: steps(rows) }
        end

        def steps(rows)
          rows.map do |row|
            before = @ledger.before(row)
            { step: row.step.delete("`"), value: row[row.leading], text: leading(row), verdict: row.verdict, told: row.story_value,
              before: (before[row.leading] if before) }
          end
        end
      end
    end
  end
end
