# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Renders the comparison of two requests: figures, statements, findings and memory.
      #
      #   comparison = Comparison.new(before, after, root: "/castellan")
      #   comparison.figures.first      # => the duration: before, after, verdict
      #   comparison.solved             # => [FindingGroup] that only the first request has
      #   comparison.to_s               # => "<!DOCTYPE html>…"
      class Comparison < View
        template "comparison_page"

        # Durations that differ by less are the same. Counts are compared exactly.
        SAME = 0.05
        FIGURES = {
          "Time" => [:duration, :duration_ns.to_proc],
          "SQL" => [:duration, ->(result) { result.parts[:sql_ns] }],
          "Rendering" => [:duration, ->(result) { result.parts[:render_ns] }],
          "Caches" => [:duration, ->(result) { result.parts[:cache_ns] }],
          "Application code" => [:duration, ->(result) { result.parts[:outside_ns] }],
          "Garbage collection" => [:duration, ->(result) { result.parts[:gc_ns] }],
          "Queries" => [:count, ->(result) { result.totals[:queries] }],
          "Rows" => [:count, :rows.to_proc],
          "Objects" => [:count, ->(result) { result.objects[:count] }],
          "Allocated" => [:bytes, ->(result) { result.memory&.fetch(:total_allocated_bytes) }],
          "Retained" => [:bytes, ->(result) { result.memory&.fetch(:total_retained_bytes) }],
          "Response" => [:bytes, :response_bytes.to_proc]
        }.freeze
        MARKS = { "better" => "↓", "worse" => "↑", "same" => "=" }.freeze
        MOST_ROWS = 25
        private_constant :SAME, :FIGURES, :MARKS, :MOST_ROWS

        # `unit` is :duration, :count or :bytes; `before` and `after` are nil if they were not measured.
        Figure = Struct.new(:name, :unit, :before, :after) do
          # @return [String, nil] "better", "worse", "same"; nil if a value is missing
          def verdict
            return if before.nil? || after.nil?
            return "same" if unit == :duration ? (after - before).abs <= SAME * [after, before].max : after == before

            after < before ? "better" : "worse"
          end

          # @return [Float, nil] the larger value divided by the smaller; nil if that is 0
          def factor
            small, large = [before, after].minmax
            large.fdiv(small) if small.positive?
          end
        end

        # A statement, with its count and nanoseconds in each request (nil if not sent), or a file, with its
        # bytes.
        Row = Struct.new(:name, :before, :after, :before_ns, :after_ns) do
          # @return [String] "gone", "new", "fewer", "more"
          def kind
            return "gone" if after.zero?
            return "new" if before.zero?

            difference.negative? ? "fewer" : "more"
          end

          def difference = after - before
        end

        # @param before [Result]
        # @param after [Result]
        # @param root [String] see {View}
        def initialize(before, after, root: "")
          super(root: root)
          @before = before
          @after = after
        end

        def to_s = layout("#{duration(@before.duration_ns)} and #{duration(@after.duration_ns)}", comparison_page)

        # @return [Array<Figure>] the duration first; without figures that are zero or nil in both requests
        def figures
          all = FIGURES.map { |name, (unit, value)| Figure.new(name, unit, value.call(@before), value.call(@after)) }
          all.reject { |figure| [figure.before, figure.after].all? { |value| value.nil? || value.zero? } }
        end

        # @return [Array<Row>] statements with different counts, the largest difference first
        def statements
          differing { |result| QueryGroup.all(result.queries).to_h { |group| [group.fingerprint, [group.count, group.total_ns]] } }
        end

        # @param table [Symbol] e.g. :by_file
        # @return [Array<Row>] the largest difference first; empty unless both profiles have memory
        def memory(table)
          return [] unless @before.memory && @after.memory

          differing { |result| result.memory[table].to_h { |row| [row[:name], [row[:allocated_bytes]]] } }
        end

        # @return [Array<FindingGroup>] only in the first request
        def solved = groups(@before).except(*groups(@after).keys).values

        # @return [Array<FindingGroup>] in both requests
        def remaining = groups(@after).slice(*groups(@before).keys).values

        # @return [Array<FindingGroup>] only in the second request
        def added = groups(@after).except(*groups(@before).keys).values

        # @return [Array<String>] why the figures are hard to compare
        def remarks
          [("The depths differ (#{@before.depth}, #{@after.depth}): a deeper profile makes a request slower." if differ?(&:depth)),
           ("The endpoints differ." if differ?(&:endpoint)),
           ("Some statements are not listed, so the list below is not complete." if any? { |result| result.truncated[:queries] }),
           ("Other requests ran meanwhile, and their objects are counted, too." if any? { |result| result.objects[:overlapping] }),
           ("The statuses differ: #{@before.status || "none"}, #{@after.status || "none"}." if differ?(&:status)),
           ("The sizes of the responses differ: check that both are correct." if differ?(&:response_bytes))].compact
        end

        private

        def differ? = yield(@before) != yield(@after)

        def any? = [@before, @after].any? { |result| yield(result).to_i.positive? }

        # @yieldreturn [Hash{String => Array}] the count and the nanoseconds by name
        def differing(&block)
          before, after = [@before, @after].map(&block)
          rows = (before.keys | after.keys).map do |name|
            (one, one_ns), (other, other_ns) = before[name], after[name]
            Row.new(name, one.to_i, other.to_i, one_ns, other_ns)
          end
          rows.reject { |row| row.difference.zero? }.sort_by { |row| -row.difference.abs }
        end

        def groups(result) = FindingGroup.by_key(result.findings)

        def sides = { "before" => @before, "after" => @after }

        def headline
          time = figures.find { |figure| figure.name == "Time" } or return "Neither took any time."
          [speed(time), fewer_queries, finding_changes].compact.join(", ").then { |text| "#{text[0].upcase}#{text[1..]}." }
        end

        def speed(time)
          return if time.verdict.nil?
          return "as fast as before" if time.verdict == "same"

          "#{Figures.times(time.factor)} #{time.verdict == "better" ? "faster" : "slower"}"
        end

        def fewer_queries
          difference = @after.totals[:queries].to_i - @before.totals[:queries].to_i
          counted(difference.abs, difference.negative? ? "fewer query" : "more query") unless difference.zero?
        end

        def finding_changes
          changes = { "solved" => solved.size, "new" => added.size }.reject { |_, number| number.zero? }
          changes.map { |word, number| "#{counted(number, "finding")} #{word}" }.join(", ") if changes.any?
        end

        def verdict_of_time = figures.first&.verdict || "same"

        def verdict(figure)
          verdict = figure.verdict and
            tag(:span, Markup.new("#{MARKS.fetch(verdict)} #{change(figure)}"), class: "verdict #{verdict}")
        end

        # On a phone, an arrow replaces "less" and "more".
        def change(figure)
          if figure.verdict == "same" then "same"
          elsif figure.after.zero? then "gone"
          elsif figure.before.zero? then "new"
          else "#{Figures.times(figure.factor)}#{tag(:span, figure.verdict == "better" ? " less" : " more", class: "wide")}"
          end
        end

        def amount(figure, value) = send(figure.unit, value)

        def timeline_of(result) = Timeline.new(result, whole_ns: sides.values.map(&:duration_ns).max)

        def signed_bytes(number) = "#{number.positive? ? "+" : "−"}#{bytes(number.abs)}"

        def finding_lists
          { "solved" => solved, "new" => added, "still there" => remaining }.reject { |_, groups| groups.empty? }
        end
      end
    end
  end
end
