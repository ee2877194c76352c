# frozen_string_literal: true

module Castellan
  class Keeper
    # What the keys of a document have in common as long as its statement is the same, and the last of these keys: most requests
    # ask for what the one before them asked for, and nobody wrote in between.
    #
    #   kept = KeptStatement.new(%w[posts users], ["0.1.0", "SELECT …", "PostResource:posts(title)"])
    #   kept.dependencies           # => [Dependency, Dependency]
    #   kept.key("17.4", [[], nil]) # => "castellan:1:Vb0…", digested when the version or the values are others than the last time
    class KeptStatement
      Last = Struct.new(:version, :values, :key)
      private_constant :Last

      # @return [Array<Versions::Dependency>]
      attr_reader :dependencies

      # @param tables [Array<String>] that the document is made of
      # @param parts [Array] of the key, see {Cache::Key}
      def initialize(tables, parts)
        @tables = tables
        @dependencies = tables.map { |table| Versions::Dependency.new(table) }.freeze
        @fixed = Cache::Key.for(parts)
        @last = nil
      end

      # @return [Boolean] whether it is of these tables: scopes may choose them anew
      def of?(tables)
        @tables.equal?(tables) || @tables == tables
      end

      # Of several threads the last one's answer stays, which is right for all who read it.
      # @return [String]
      def key(version, values)
        last = @last
        return last.key if last && last.version == version && last.values == values

        Cache::Key.for([@fixed, version, values]).tap { |key| @last = Last.new(version, values, key).freeze }
      end
    end
  end
end
