# frozen_string_literal: true

module Castellan
  module Versions
    # What a document depends on: a table, or one record of it. Frozen.
    #
    #   Dependency.new("users")
    #   Dependency.new("billing.invoices", tenant: "acme")
    #   Dependency.new("posts", record: 7)
    #
    # The tenant may be said already, but no version looks at it yet: the whole table's changes count, which is exact and
    # coarser. Give `record:` only when the document is made of that record alone.
    class Dependency
      # @return [String] with its schema where it has one
      attr_reader :table
      # @return [String, nil]
      attr_reader :tenant, :record

      def initialize(table, tenant: nil, record: nil)
        @table = table.to_s.dup.freeze
        raise ConfigurationError, "a dependency needs the name of a table, got #{table.inspect}" unless Dependency.name?(@table)

        @tenant = tenant&.to_s&.freeze
        @record = record&.to_s&.freeze
        freeze
      end

      # @return [Boolean] whether it names a table: identifiers with at most one dot between, no quotation marks
      def self.name?(table)
        table.match?(/\A[^\s"'`;.\x00]+(?:\.[^\s"'`;.\x00]+)?\z/)
      end

      def ==(other)
        other.is_a?(Dependency) && table == other.table && tenant == other.tenant && record == other.record
      end
      alias eql? ==

      def hash
        [table, tenant, record].hash
      end
    end
  end
end
