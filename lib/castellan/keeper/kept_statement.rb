# frozen_string_literal: true

module Castellan
  class Keeper
    # Computes the cache keys of one statement, and memoizes the last one, which most requests repeat.
    #
    #   kept = KeptStatement.new(%w[posts users], ["0.1.0", "SELECT …", "PostResource:posts(title)"])
    #   kept.dependencies           # => [Dependency, Dependency]
    #   kept.key("17.4", [[], nil]) # => "castellan:1:Vb0…", digested again after the version or values change
    class KeptStatement
      # A key, with the version and values that it digests.
      class Last
        attr_reader :version, :values, :key

        def initialize(version, values, key)
          @version = version
          @values = values
          @key = key
          @etags = {}
          @tagged = nil
        end

        # @param coding [String, nil] one of the few content codings of documents
        # @param written [Document::Rendering::Written, nil] the document, if it expires
        # @return [String] the entity tag
        def etag(coding, written = nil)
          return @etags[coding] ||= Cache::Key.etag(@key, coding).freeze unless written

          tagged, etags = @tagged
          @tagged = [written, etags = {}].freeze unless written.equal?(tagged)
          etags[coding] ||= Cache::Key.etag(Cache::Key.for([@key, written.tag]), coding).freeze
        end
      end

      # @param tables [Array<String>] the tables that the document is read from
      # @param parts [Array] of the key, see {Cache::Key}
      def initialize(tables, parts)
        @tables = tables
        @dependencies = tables.map { |table| Versions::Dependency.new(table) }.freeze
        @parts = BoundedCache.new(limit: 1000)
        @fixed = Cache::Key.for(parts)
        @last = nil
      end

      # @param parts [Array<Array(String, String, String)>] see {Document::Rendering#parts}
      # @return [Array<Versions::Dependency>]
      def dependencies(parts)
        return @dependencies if parts.empty?

        @parts.fetch(parts) do
          @dependencies.map { |all|
            _, by, value = parts.assoc(all.table)
            by ? Versions::Dependency.new(all.table, by: by, value: value) : all
          }.freeze
        end
      end

      # @return [Boolean] whether the statement reads these tables; a scope may choose others per request
      def of?(tables)
        @tables.equal?(tables) || @tables == tables
      end

      # @return [String]
      def key(version, values) = last(version, values).key

      # Threads may overwrite each other's last key; each returns the one that it computed or found.
      # @return [Last]
      def last(version, values)
        last = @last
        return last if last && last.version == version && last.values == values # fast if they are identical

        @last = Last.new(version, values, Cache::Key.for([@fixed, version, values]))
      end
    end
  end
end
