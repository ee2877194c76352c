# frozen_string_literal: true

module Castellan
  module Versions
    # A table that a document depends on. Frozen.
    #
    #   Dependency.new("users")
    #   Dependency.new("billing.invoices")
    class Dependency
      # @return [String] with its schema where it has one
      attr_reader :table

      # @param table [#to_s]
      # @raise [ConfigurationError] for what is no name of a table
      def initialize(table)
        @table = table.to_s.dup.freeze
        raise ConfigurationError, "a dependency needs the name of a table, got #{table.inspect}" unless Dependency.name?(@table)

        freeze
      end

      # @return [Boolean] whether it names a table: identifiers with at most one dot between, no quotation marks
      def self.name?(table)
        table.match?(/\A[^\s"'`;.\x00]+(?:\.[^\s"'`;.\x00]+)?\z/)
      end

      def ==(other)
        other.is_a?(Dependency) && table == other.table
      end
      alias eql? ==

      def hash = table.hash
    end
  end
end
