# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Where the time of a request went, as the parts that add up to it.
      #
      #   Parts.of(result).map(&:name) # => ["SQL", "rendering", "caches", "application code"]
      #   Parts.of(result).max_by(&:duration_ns)
      #
      # The time of the garbage collector lies within these and is told beside them.
      module Parts
        NAMES = { sql_ns: "SQL", render_ns: "rendering", cache_ns: "caches", outside_ns: "application code" }.freeze
        private_constant :NAMES

        # `kind` is the name of its colour in page.css, `start_ns` where it begins when all stand in one bar.
        Part = Struct.new(:kind, :name, :duration_ns, :start_ns)

        # @param result [Result]
        # @return [Array<Part>] those that took any time
        def self.of(result)
          start = 0
          NAMES.filter_map do |key, name|
            duration = result.parts[key].to_i
            next unless duration.positive?

            Part.new(key.to_s.delete_suffix("_ns"), name, duration, start).tap { start += duration }
          end
        end
      end
    end
  end
end
