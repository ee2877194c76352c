# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Compares two requests: figures, statements, findings and memory.
      #
      #   comparison = Comparison.new(before, after)
      #   comparison.figures.first      # => the duration: before, after, verdict
      #   comparison.statements         # => [Statement], only those that differ
      #   comparison.solved             # => [FindingGroup] that only the first request has
      class Comparison
        # Smaller relative differences of durations are noise; counts are compared exactly.
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
        private_constant :SAME, :FIGURES

        # `unit` is :duration, :count or :bytes; `before` and `after` are nil if not measured.
        Figure = Struct.new(:name, :unit, :before, :after) do
          # @return [String, nil] "better", "worse", "same"; nil if a value is missing
          def verdict
            return if before.nil? || after.nil?
            return "same" if unit == :duration ? (after - before).abs <= SAME * [after, before].max : after == before

            after < before ? "better" : "worse"
          end

          # @return [Float, nil] ratio of the larger to the smaller value
          def factor
            small, large = [before, after].compact.minmax
            large.fdiv(small) if small&.positive? && before && after
          end
        end

        # Counts and total times of one fingerprint; a time is nil if the request did not send it.
        Statement = Struct.new(:fingerprint, :before_count, :after_count, :before_ns, :after_ns) do
          # @return [String] "gone", "new", "fewer", "more"
          def kind
            return "gone" if after_count.zero?
            return "new" if before_count.zero?

            after_count < before_count ? "fewer" : "more"
          end

          # @return [Integer]
          def difference = after_count - before_count
        end

        # Allocated bytes of one file, gem, line or class.
        Allocation = Struct.new(:name, :before_bytes, :after_bytes) do
          # @return [Integer]
          def difference = after_bytes - before_bytes
        end

        # @return [Result]
        attr_reader :before, :after

        # @param before [Result]
        # @param after [Result]
        def initialize(before, after)
          @before = before
          @after = after
        end

        # @return [Array<Figure>] duration first, without figures that are zero or nil in both
        def figures
          all = FIGURES.map { |name, (unit, value)| Figure.new(name, unit, value.call(@before), value.call(@after)) }
          all.reject { |figure| [figure.before, figure.after].all? { |value| value.nil? || value.zero? } }
        end

        # @return [Array<Statement>] with different counts, largest difference first
        def statements
          before, after = [@before, @after].map { |result| QueryGroup.all(result.queries).to_h { |group| [group.fingerprint, group] } }
          differing(before.keys | after.keys) do |fingerprint|
            one, other = before[fingerprint], after[fingerprint]
            Statement.new(fingerprint, one&.count.to_i, other&.count.to_i, one&.total_ns, other&.total_ns)
          end
        end

        # @return [Array<FindingGroup>]
        def solved = groups(@before).except(*groups(@after).keys).values

        # @return [Array<FindingGroup>]
        def remaining = groups(@after).slice(*groups(@before).keys).values

        # @return [Array<FindingGroup>]
        def added = groups(@after).except(*groups(@before).keys).values

        # @param table [Symbol] e.g. :by_file
        # @return [Array<Allocation>] largest difference first; empty unless both profiles have memory
        def memory(table)
          return [] unless @before.memory && @after.memory

          before, after = [@before, @after].map { |result| result.memory[table].to_h { |row| [row[:name], row[:allocated_bytes]] } }
          differing(before.keys | after.keys) { |name| Allocation.new(name, before.fetch(name, 0), after.fetch(name, 0)) }
        end

        # @return [Array<String>] reasons why the figures are hard to compare
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

        def differing(names, &block)
          names.map(&block).reject { |one| one.difference.zero? }.sort_by { |one| -one.difference.abs }
        end

        def groups(result) = FindingGroup.by_key(result.findings)
      end
    end
  end
end
