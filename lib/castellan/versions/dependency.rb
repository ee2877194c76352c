# frozen_string_literal: true

module Castellan
  module Versions
    # Names a table on which a document depends, or its rows with one value of a column. Frozen.
    #
    #   Dependency.new("users")
    #   Dependency.new("billing.invoices")
    #   Dependency.new("posts", by: "account_id", value: 7)
    class Dependency
      # @return [String] table name, with its schema if given
      # @return [String] the table, followed by a space and the column if given; without the value
      # @return [String, nil] nil: all rows
      # @return [Integer] computed once, because versions are looked up by dependencies
      attr_reader :table, :counter, :value, :hash

      # @param table [#to_s]
      # @param by [String, nil] a column of `castellan_versions by:`; for others the version is the table's
      # @param value [Integer, String, nil] an integer or a UUID
      # @raise [ConfigurationError] if the table name is invalid
      def initialize(table, by: nil, value: nil)
        @table = table.to_s.dup.freeze
        raise ConfigurationError, "a dependency needs the name of a table, got #{table.inspect}" unless Dependency.name?(@table)

        @counter = by ? "#{@table} #{by}".freeze : @table
        @value = by && value.to_s.downcase.freeze
        @hash = [@counter, @value].hash
        freeze
      end

      # @return [Boolean] whether it is an identifier, or two joined by a dot, without quotes and blanks
      def self.name?(table)
        table.match?(/\A[^\s"'`;.\x00]+(?:\.[^\s"'`;.\x00]+)?\z/)
      end

      # @param model [Class] of ActiveRecord or Sequel
      # @return [Array<String>] its tables; several with Sequel's class_table_inheritance
      def self.tables_of(model)
        tables = model.respond_to?(:cti_tables) ? model.cti_tables : [model.table_name]
        tables.map do |table|
          plain = table.is_a?(String) || table.is_a?(Symbol)
          plain ? table.to_s : "#{table.table}.#{table.column}" # Sequel[:schema][:table]
        end
      end

      def ==(other)
        other.is_a?(Dependency) && counter == other.counter && value == other.value
      end
      alias eql? ==
    end
  end
end
