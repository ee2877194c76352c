# frozen_string_literal: true

module Castellan
  module CLI
    class ProxyCommand
      # Lists the paths that mounted apps serve, with what their resources declare for caches.
      #
      #   places = Places.new([["/api", app]])
      #   places.to_a.first.comment   # => "/api/posts: public, s-maxage=600"
      #   places.paths                # => ["/api/posts", "/api/operations"]
      #
      # `cached` only decides whether the proxy looks into its cache; the header fields of each response decide
      # whether it is stored.
      class Places
        # A path and everything below it. `lasting`: its own documents have a lifetime, not only related ones. `cdn` is
        # set if nginx can follow CDN-Cache-Control for its documents.
        Place = Struct.new(:path, :fields, :cached, :lasting, :cdn, keyword_init: true) do
          # @return [String] the path and the header fields of its documents
          def comment
            "#{path}: #{fields.map { |one| one.values.join("; CDN-Cache-Control: ") }.join(" or ")}#{", not cached" unless cached}"
          end

          # @return [Boolean] whether this is the path, or below it
          def in?(other) = path == other || path.start_with?("#{other}/")
        end

        # @param mounted [Array<Array(String, Serve::App)>] see {MountedApps}
        # @raise [Castellan::Error] if a path has characters that a configuration cannot contain
        def initialize(mounted)
          @mounted = mounted
          served = mounted.flat_map { |prefix, app| app.resource_endpoints.map { |endpoint| ["#{prefix}#{endpoint.path}", endpoint] } }
          @places = served.group_by(&:first).map { |path, all| place(checked(path), all.map(&:last)) }.sort_by { |place| -place.path.size }
        end

        # @return [Array<Place>] longer paths first, because they take precedence; without the root, which needs
        #   no place of its own
        def to_a = @places.reject { |place| place.path.empty? }

        # @return [Place, nil] of a resource with the path "/"
        def root = @places.find { |place| place.path.empty? }

        # @return [Array<String>] all paths that go to Castellan
        # @raise [Castellan::Error] if a resource has the path "/"
        def paths
          raise Error, "a resource has the path /, so nothing would go to --rest; write at: in its declaration" if root

          served.each { |path| checked(path) }
        end

        # @return [Array<String>] all paths at which an app answers
        def served = @places.map(&:path) + @mounted.flat_map { |prefix, app| app.other_paths.map { |path| "#{prefix}#{path}" } }

        # @return [String, nil] the first of these paths at, above and below which no app answers
        def unserved(only)
          only.find { |path| served.none? { |one| Place.new(path: one).in?(path) || Place.new(path: path).in?(one) } }
        end

        # @param only [Array<String>] the paths that go to Castellan; empty: all
        # @return [Array<Place>] those within these paths
        def within(only)
          return to_a if only.empty?

          inside = to_a.select { |place| only.any? { |path| place.in?(path) } }
          (inside + (only - inside.map(&:path)).filter_map { |path| around(path) }).sort_by { |place| -place.path.size }
        end

        private

        def around(path)
          place = to_a.find { |one| Place.new(path: path).in?(one.path) }
          Place.new(path: path, fields: place.fields, cached: place.cached) if place
        end

        def checked(path)
          return path if path.empty? || path.match?(PATH)

          raise Error, "the application serves #{path.inspect}, but a path in a configuration has letters, digits and . _ ~ -; " \
                       "write at: with such a path, or leave out the file and write --only"
        end

        # A path is mounted several times if the hosts differ.
        def place(path, endpoints)
          fields = endpoints.map(&:cache_fields).uniq
          cached = endpoints.any? { |endpoint| cached?(endpoint) }
          lasting = cached && fields.all? { |one| storable?(one) }
          Place.new(path: path, fields: fields, cached: cached, lasting: lasting, cdn: (cdn(fields.first) if fields.one?))
        end

        # Related resources, `/posts/1/comments`, have the policy of their own resource.
        def cached?(endpoint)
          return false if endpoint.authenticated?

          definition = endpoint.resource.definition
          related = [definition, *definition.types].flat_map { |one| one.relationships.each_value.flat_map(&:definitions) }
          [endpoint.cache_fields, *related.map { |one| Document.cache_control_of(one).shared }].any? { |fields| storable?(fields) }
        end

        def storable?(fields)
          fields.each_value.any? { |text| !text.match?(/private|no-cache/) }
        end

        def cdn(fields)
          seconds = fields["cdn-cache-control"].to_s[/\bmax-age=(\d+)/, 1]
          { seconds: seconds, fields: fields.values_at("cdn-cache-control", "cache-control") } if seconds
        end
      end
    end
  end
end
