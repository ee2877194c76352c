# frozen_string_literal: true

module Castellan
  module Instrument
    # Counts the statements of a recording and their time.
    #
    #   counter = Instrument::Counter.new
    #   Instrument.record(counter) { User.includes(:roles).to_a }
    #   counter.queries          # => 3
    #   counter.cached_queries   # => 0, answered by the ORM's query cache
    #   counter.sql_ns           # => 812_000
    #   counter.tables           # => ["assignments", "roles", "users"]
    #
    # Transactions and what the ORM asks of the schema are not counted; what Castellan asks for a version is, though it looks at the
    # schema too. Recordings nest, so it can be opened around or inside the detector.
    # Threads that are started inside its recording count with it.
    class Counter
      # @return [Integer]
      attr_reader :queries, :cached_queries, :sql_ns

      def initialize
        @queries = 0
        @cached_queries = 0
        @sql_ns = 0
        @texts = {}
      end

      # Told by {Recording#query}.
      def query(sql, name, _started_ns, duration_ns, cached, _rows)
        return unless @texts.fetch(sql) { keep(sql, name) }

        if cached
          @cached_queries += 1
        else
          @queries += 1
          @sql_ns += duration_ns
        end
      end

      # @return [Counter] who counts for a thread that is started meanwhile
      def strand = self

      # @return [Array<String>] the tables that were read or written, in alphabetical order
      def tables
        @texts.values.select { |fingerprint| fingerprint }.uniq.flat_map { |fingerprint| Counter.tables(fingerprint) }.uniq.sort
      end

      # @param fingerprint [String] see {Fingerprint.of}
      # @return [Array<String>] the tables it names after FROM, JOIN, INTO and UPDATE
      def self.tables(fingerprint)
        fingerprint.scan(/\b(?:from|join|into|update) (?:only )?([\w.]+)/).flatten
      end

      # @return [Boolean] whether a statement is work of the application: not of a transaction, the schema or the connection
      def self.work?(fingerprint, name)
        !NAMES_LEFT_OUT.include?(name) && !fingerprint.match?(LEFT_OUT)
      end

      NAMES_LEFT_OUT = %w[SCHEMA TRANSACTION EXPLAIN].freeze
      LEFT_OUT = /\A(?:begin|commit|rollback|savepoint|release|set|show|pragma|explain|start\ transaction|reset|discard)\b|
                  \b(?:from|join)\ (?:pg_catalog\.|pg_(?!sleep\b)[a-z_]+|information_schema\.|sqlite_master|sqlite_schema|sqlite_temp)/x
      MOST_TEXTS = 5_000
      OF_VERSIONS = /\bfrom castellan[._]/
      private_constant :NAMES_LEFT_OUT, :LEFT_OUT, :MOST_TEXTS, :OF_VERSIONS

      private

      def keep(sql, name)
        fingerprint = Fingerprint.of(sql)
        fingerprint = false unless Counter.work?(fingerprint, name) || fingerprint.match?(OF_VERSIONS)
        @texts.size < MOST_TEXTS ? @texts[sql] = fingerprint : fingerprint
      end
    end
  end
end
