# frozen_string_literal: true

module Castellan
  module CLI
    class ProxyCommand
      # Lists the locations of nginx that go to Castellan. nginx uses the first pattern that matches.
      #
      #   Locations.for(places, []).map(&:pattern)   # => ["~ ^/posts(/[^/]*)?$", "~ ^/posts(/|$)", "/"]
      module Locations
        # `locked`: simultaneous clients wait for one response, which is stored.
        Location = Struct.new(:pattern, :comment, :cached, :locked, :cdn)

        module_function

        # @param places [Array<Places::Place>]
        # @param only [Array<String>] the paths that go to Castellan; empty: all
        # @return [Array<Location>]
        def for(places, only)
          others = (only - places.map(&:path)).map { |path| Location.new(below(path), nil, true) }
          places.flat_map { |place| of(place) } + (only.empty? ? [Location.new("/", nil, true)] : others)
        end

        # Only the collection and its records have the lifetime of the resource, related resources do not.
        def of(place)
          return [Location.new(below(place.path), place.comment, place.cached)] unless place.lasting

          [Location.new("~ ^#{Regexp.escape(place.path)}(/[^/]*)?$", place.comment, true, true, place.cdn),
           Location.new(below(place.path), "#{place.path}: related resources", true)]
        end

        def below(path) = "~ ^#{Regexp.escape(path)}(/|$)"
      end
    end
  end
end
