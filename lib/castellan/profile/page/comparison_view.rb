# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Renders the comparison of two requests.
      #
      #   ComparisonView.new(Comparison.new(before, after), root: "/castellan").to_s
      class ComparisonView < View
        template "comparison_page"

        MARKS = { "better" => "↓", "worse" => "↑", "same" => "=" }.freeze
        MOST_ROWS = 25
        private_constant :MARKS, :MOST_ROWS

        # @param comparison [Comparison]
        def initialize(comparison, **options)
          super(**options)
          @comparison = comparison
        end

        private

        attr_reader :comparison

        def title = "#{duration(before.duration_ns)} and #{duration(after.duration_ns)}"

        def content = comparison_page

        def before = comparison.before

        def after = comparison.after

        def sides = { "before" => before, "after" => after }

        # @return [String] the change in one sentence
        def headline
          time = comparison.figures.find { |figure| figure.name == "Time" } or return "Neither took any time."
          [speed(time), queries, findings].compact.join(", ").then { |text| "#{text[0].upcase}#{text[1..]}." }
        end

        def speed(time)
          return "as fast as before" if time.verdict == "same"

          "#{Figures.times(time.factor)} #{time.verdict == "better" ? "faster" : "slower"}"
        end

        def queries
          difference = after.totals[:queries].to_i - before.totals[:queries].to_i
          return if difference.zero?

          counted(difference.abs, difference.negative? ? "fewer query" : "more query")
        end

        def findings
          changes = { "solved" => comparison.solved.size, "new" => comparison.added.size }.reject { |_, number| number.zero? }
          changes.map { |word, number| "#{counted(number, "finding")} #{word}" }.join(", ") if changes.any?
        end

        def verdict_of_time = comparison.figures.first&.verdict || "same"

        def verdict(figure)
          verdict = figure.verdict and
            tag(:span, Markup.new("#{MARKS.fetch(verdict)} #{change(figure)}"), class: "verdict #{verdict}")
        end

        # On a phone the arrow replaces "less" and "more".
        def change(figure)
          if figure.verdict == "same" then "same"
          elsif figure.after.zero? then "gone"
          elsif figure.before.zero? then "new"
          else "#{Figures.times(figure.factor)}#{tag(:span, figure.verdict == "better" ? " less" : " more", class: "wide")}"
          end
        end

        def amount(figure, value)
          case figure.unit
          when :duration then duration(value)
          when :bytes then bytes(value)
          else count(value)
          end
        end

        def timeline_of(result) = Timeline.new(result, whole_ns: [before.duration_ns, after.duration_ns].max)

        def signed_bytes(number) = "#{number.positive? ? "+" : "−"}#{bytes(number.abs)}"

        def finding_lists
          lists = { "solved" => comparison.solved, "new" => comparison.added, "still there" => comparison.remaining }
          lists.reject { |_, groups| groups.empty? }
        end
      end
    end
  end
end
