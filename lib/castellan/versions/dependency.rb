# frozen_string_literal: true

module Castellan
  module Versions
    # Names a table that a document depends on, or those of its rows with one value of a column. Frozen.
    #
    #   Dependency.new("users")
    #   Dependency.new("billing.invoices")
    #   Dependency.new("posts", by: "account_id", value: 7)
    class Dependency
      # @return [String] table name, with its schema if given
      # @return [String] the table, and the column after a space; the same for all values
      # @return [String, nil] nil: all rows
      # @return [Integer] computed once, because versions are looked up by their dependencies
      attr_reader :table, :counter, :value, :hash

      # @param table [#to_s]
      # @param by [String, nil] a column that `castellan_versions by:` names; otherwise the version is that of the table
      # @param value [Integer, String, nil] an integer or a UUID
      # @raise [ConfigurationError] if it is not a table name
      def initialize(table, by: nil, value: nil)
        @table = table.to_s.dup.freeze
        raise ConfigurationError, "a dependency needs the name of a table, got #{table.inspect}" unless Dependency.name?(@table)

        @counter = by ? "#{@table} #{by}".freeze : @table
        @value = by && value.to_s.downcase.freeze
        @hash = [@counter, @value].hash
        freeze
      end

      # @return [Boolean] whether it is one identifier or two with a dot, without quotes and blanks
      def self.name?(table)
        table.match?(/\A[^\s"'`;.\x00]+(?:\.[^\s"'`;.\x00]+)?\z/)
      end

      def ==(other)
        other.is_a?(Dependency) && counter == other.counter && value == other.value
      end
      alias eql? ==
    end
  end
end
