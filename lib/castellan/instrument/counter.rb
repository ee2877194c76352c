# frozen_string_literal: true

module Castellan
  module Instrument
    # Counts the statements of a recording and adds up their time.
    #
    #   counter = Instrument::Counter.new
    #   Instrument.record(counter) { User.includes(:roles).to_a }
    #   counter.queries          # => 3
    #   counter.cached_queries   # => 0, answered by the ORM's query cache
    #   counter.sql_ns           # => 812_000
    #
    # Does not count transactions and schema queries. Counts Castellan's own queries for versions.
    class Counter
      # @return [Integer]
      attr_reader :queries, :cached_queries, :sql_ns

      def initialize
        @queries = 0
        @cached_queries = 0
        @sql_ns = 0
        @counted = {}
      end

      def query(sql, name, _started_ns, duration_ns, cached, _rows, _binds)
        return unless @counted.fetch(sql) { counted?(sql, name) }

        if cached
          @cached_queries += 1
        else
          @queries += 1
          @sql_ns += duration_ns
        end
      end

      # @return [Counter] the observer of a thread that starts inside the recording
      def strand = self

      # @param fingerprint [String] see {Fingerprint.of}
      # @return [Array<String>] the tables after FROM, JOIN, INTO and UPDATE
      def self.tables(fingerprint) = fingerprint.scan(/\b(?:from|join|into|update) (?:only )?([\w.]+)/).flatten

      # @return [Boolean] false for transactions, schema queries and connection commands
      def self.work?(fingerprint, name) = !OMITTED_NAMES.include?(name) && !fingerprint.match?(OMITTED)

      # Rails reads the migrations of each database in development.
      OMITTED_NAMES = ["SCHEMA", "TRANSACTION", "EXPLAIN", "ActiveRecord::SchemaMigration Load"].freeze
      OMITTED = /\A(?:begin|commit|rollback|savepoint|release|set|show|pragma|explain|start\ transaction|reset|discard)\b|
                  \b(?:from|join)\ (?:pg_catalog\.|pg_(?!sleep\b)[a-z_]+|information_schema\.|sqlite_master|sqlite_schema|sqlite_temp)/x
      MOST_TEXTS = 5_000
      VERSIONS = /\bfrom castellan[._]/
      private_constant :OMITTED_NAMES, :OMITTED, :MOST_TEXTS, :VERSIONS

      private

      def counted?(sql, name)
        fingerprint = Fingerprint.of(sql)
        counted = Counter.work?(fingerprint, name) || fingerprint.match?(VERSIONS)
        @counted.size < MOST_TEXTS ? @counted[sql] = counted : counted
      end
    end
  end
end
