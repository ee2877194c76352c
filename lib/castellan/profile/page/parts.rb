# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Splits the duration of a request into parts that add up to it.
      #
      #   Parts.of(result).map(&:name) # => ["SQL", "rendering", "caches", "application code"]
      #   Parts.of(result).max_by(&:duration_ns)
      #
      # Garbage collection runs within these parts, so it is not one of them.
      module Parts
        NAMES = { sql_ns: "SQL", render_ns: "rendering", cache_ns: "caches", outside_ns: "application code" }.freeze
        private_constant :NAMES

        # `kind` is a CSS class of page.css, `start_ns` the offset within one stacked bar.
        Part = Struct.new(:kind, :name, :duration_ns, :start_ns)

        # @param result [Result]
        # @return [Array<Part>] parts with a positive duration
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
