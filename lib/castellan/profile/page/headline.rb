# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Describes the main problem of a result in one sentence, and splits the duration into parts.
      #
      #   headline = Headline.new(result)
      #   headline.text   # => "324 of 329 queries repeat: 16.2 ms of 213 ms."
      #   headline.parts.map(&:name) # => ["SQL", "rendering", "caches", "application code"]
      #   headline.next_step # => "add .preload(:employee) where the users are loaded: app/…/users_controller.rb:9"
      class Headline
        MOST = 0.5
        SLOW_NS = 5_000_000
        PARTS = { sql_ns: "SQL", render_ns: "rendering", cache_ns: "caches", outside_ns: "application code" }.freeze
        private_constant :MOST, :SLOW_NS, :PARTS

        # `kind` is a CSS class in page.css.
        Part = Struct.new(:kind, :name, :duration_ns)

        # @param result [Result]
        def initialize(result)
          @result = result
          @groups = FindingGroup.all(result.findings)
        end

        # Without garbage collection, which runs during the parts.
        # @return [Array<Part>] the parts of the duration that are not zero
        def parts
          all = PARTS.map { |key, name| Part.new(key.to_s.delete_suffix("_ns"), name, @result.parts[key].to_i) }
          all.select { |part| part.duration_ns.positive? }
        end

        # @return [String]
        def text
          if @result.exception then "It ended with an exception: #{@result.exception}"
          elsif @groups.any? then found
          elsif @result.duration_ns < SLOW_NS then "Nothing stands out, and it is fast."
          else largest_part
          end
        end

        # @return [Boolean] whether the next step is a change of code
        def code? = @groups.any?

        # @return [String, nil]
        def next_step
          return @groups.filter_map(&:fix).first if @groups.any?
          return if @result.exception || @result.duration_ns < SLOW_NS

          "a profile of depth cpu shows which lines take the time" if part&.kind == "outside" && @result.flame.nil?
        end

        # @return [String] "bad" with findings or an exception, "good" for a fast request, else "plain"
        def kind
          return "bad" if @result.exception || @groups.any?

          @result.duration_ns < SLOW_NS ? "good" : "plain"
        end

        private

        def found
          repeating = @groups.select(&:repeats?)
          return "#{counted(repeating)} repeat: #{cost(repeating)}#{others(@groups - repeating)}" if repeating.any?

          first = @groups.first.words
          "#{first[0].upcase}#{first[1..]}: #{cost(@groups)}"
        end

        def counted(groups) = "#{Figures.count(groups.sum(&:count))} of #{Figures.counted(@result.totals[:queries], "query")}"

        def cost(groups)
          time = Figures.duration(groups.sum(&:total_ns))
          "#{groups.any?(&:cached?) ? "at most #{time}" : "#{time} in the database"}, of #{Figures.duration(@result.duration_ns)} in all."
        end

        def others(groups) = groups.any? ? " And #{Figures.counted(groups.size, "other finding")}." : ""

        def part = parts.max_by(&:duration_ns)

        def largest_part
          largest = part or return "Nothing was recorded of where the time went."
          share = Figures.share(largest.duration_ns, @result.duration_ns)
          return "#{share} of the time is #{largest.name}." if largest.duration_ns >= @result.duration_ns * MOST

          "The largest part is #{largest.name}: #{share}."
        end
      end
    end
  end
end
