# frozen_string_literal: true

module Castellan
  module Versions
    # Names a table that a document depends on. Frozen.
    #
    #   Dependency.new("users")
    #   Dependency.new("billing.invoices")
    class Dependency
      # @return [String] table name, with its schema if given
      # @return [Integer] computed once, because versions are looked up by their dependencies
      attr_reader :table, :hash

      # @param table [#to_s]
      # @raise [ConfigurationError] if it is not a table name
      def initialize(table)
        @table = table.to_s.dup.freeze
        raise ConfigurationError, "a dependency needs the name of a table, got #{table.inspect}" unless Dependency.name?(@table)

        @hash = @table.hash
        freeze
      end

      # @return [Boolean] whether it is one identifier or two with a dot, without quotes and blanks
      def self.name?(table)
        table.match?(/\A[^\s"'`;.\x00]+(?:\.[^\s"'`;.\x00]+)?\z/)
      end

      def ==(other)
        other.is_a?(Dependency) && table == other.table
      end
      alias eql? ==
    end
  end
end
