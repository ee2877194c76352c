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
        private_constant :SAME

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

          # @return [Numeric, nil]
          def difference = before && after && (after - before)
        end

        # Counts and total times of one fingerprint; a time is nil if the request did not send it.
        Statement = Struct.new(:fingerprint, :before_count, :after_count, :before_ns, :after_ns) do
          # @return [String] "gone", "new", "fewer", "more"
          def kind
            return "gone" if after_count.zero?
            return "new" if before_count.zero?

            after_count < before_count ? "fewer" : "more"
          end
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
          [figure("Time", :duration) { |result| result.duration_ns },
           figure("SQL", :duration) { |result| result.parts[:sql_ns] },
           figure("Rendering", :duration) { |result| result.parts[:render_ns] },
           figure("Caches", :duration) { |result| result.parts[:cache_ns] },
           figure("Application code", :duration) { |result| result.parts[:outside_ns] },
           figure("Garbage collection", :duration) { |result| result.parts[:gc_ns] },
           *counts].reject { |figure| [figure.before, figure.after].all? { |value| value.nil? || value.zero? } }
        end

        # @return [Array<Statement>] with different counts, largest difference first
        def statements
          before, after = [@before, @after].map { |result| QueryGroup.all(result.queries).to_h { |group| [group.fingerprint, group] } }
          all = (before.keys | after.keys).map { |fingerprint| statement(fingerprint, before[fingerprint], after[fingerprint]) }
          all.reject { |one| one.before_count == one.after_count }.sort_by { |one| -(one.before_count - one.after_count).abs }
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
          (before.keys | after.keys).map { |name| Allocation.new(name, before.fetch(name, 0), after.fetch(name, 0)) }
                                    .reject { |row| row.difference.zero? }.sort_by { |row| -row.difference.abs }
        end

        # @return [Array<String>] reasons why the figures are hard to compare
        def remarks = [depths, endpoints, truncated, overlapping, statuses, sizes].compact

        private

        def depths
          return if @before.depth == @after.depth

          "They were profiled at different depths (#{@before.depth}, #{@after.depth}): a deeper profile makes a request slower."
        end

        def endpoints
          "They are of different endpoints." if @before.endpoint != @after.endpoint
        end

        def truncated
          cut = [@before, @after].any? { |result| result.truncated[:queries].to_i.positive? }
          "Not all statements are listed: what is said of them below is not complete." if cut
        end

        def overlapping
          others = [@before, @after].sum { |result| result.objects[:overlapping].to_i }
          "Other requests ran meanwhile, and their objects are counted, too." if others.positive?
        end

        def statuses
          "Their statuses differ: #{@before.status || "none"}, #{@after.status || "none"}." if @before.status != @after.status
        end

        def sizes
          "Their responses differ in size: see that both say what they should." if @before.response_bytes != @after.response_bytes
        end

        def counts
          [figure("Queries", :count) { |result| result.totals[:queries] },
           figure("Rows", :count, &:rows),
           figure("Objects", :count) { |result| result.objects[:count] },
           figure("Allocated", :bytes) { |result| result.memory&.fetch(:total_allocated_bytes) },
           figure("Retained", :bytes) { |result| result.memory&.fetch(:total_retained_bytes) },
           figure("Response", :bytes) { |result| result.response_bytes }]
        end

        def figure(name, unit) = Figure.new(name, unit, yield(@before), yield(@after))

        def statement(fingerprint, before, after)
          Statement.new(fingerprint, before&.count.to_i, after&.count.to_i, before&.total_ns, after&.total_ns)
        end

        def groups(result) = FindingGroup.by_key(result.findings)
      end
    end
  end
end
