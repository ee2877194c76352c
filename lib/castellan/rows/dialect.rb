# frozen_string_literal: true

require "json"

module Castellan
  module Rows
    # Writes the SQL that differs by database: lists of ids and grouped links. Frozen.
    #
    #   Dialect.for(:postgres).among(%("comments"."post_id"), "bigint")
    #   # => %("comments"."post_id" = ANY($1::bigint[]))
    #   Dialect.for(:sqlite).among(%("comments"."post_id"), "integer")
    #   # => %("comments"."post_id" IN (SELECT value FROM json_each(?)))
    #
    # PostgreSQL and SQLite take all ids as one bound value, so that the SQL is the same for any number of
    # parents. Types of other databases are read through models.
    class Dialect
      LIST = /= ANY\((\$1::[^()]+)\)/
      JSON_LIST = "IN (SELECT value FROM json_each(?))"
      # Without a length, PostgreSQL reads `character` as one character and `bit` as one bit.
      OF_ANY_LENGTH = { "character" => "bpchar", "bit" => "varbit" }.freeze
      # PostgreSQL cannot sort these types.
      UNORDERED = %w[json xml point line lseg box path polygon circle xid cid].freeze
      LARGEST = (2**63) - 1
      private_constant :UNORDERED, :LIST, :JSON_LIST, :OF_ANY_LENGTH, :LARGEST

      # @param name [Symbol] :sqlite, :postgres, or another
      # @return [Dialect]
      def self.for(name) = { sqlite: SQLITE, postgres: POSTGRES }.fetch(name, OTHER)

      # @param type [String] a column's database type
      # @return [String] a type without a length that holds all of the column's values
      def self.without_length(type)
        bare = type.sub(/\(.*\)/, "")
        OF_ANY_LENGTH.fetch(bare, bare)
      end

      # @return [Symbol]
      attr_reader :name

      # @return [String, nil] why rows cannot be read from the database
      def reason
        "rows are read from PostgreSQL and SQLite alone" if name == :other
      end

      def initialize(name)
        @name = name
        @singles = BoundedCache.new(limit: 1_000)
        freeze
      end

      # @return [Boolean] whether several SELECTs can be sent to the database in one round trip
      def overlaps? = name == :postgres && PostgresDriver::Pipeline.possible?

      # @param expression [String] the SQL expression to compare with the ids
      # @param type [String] the column's database type
      # @return [String] a condition with a placeholder for a list of ids
      def among(expression, type)
        name == :sqlite ? "#{expression} #{JSON_LIST}" : "#{expression} = ANY($1::#{type}[])"
      end

      # @param sql [String] a statement with a condition of {#among}, one of few that repeat
      # @return [String] the same for one id. PostgreSQL can reuse its plan; it plans short lists anew in each
      #   request, which takes longer than finding the row. SQLite needs no table for the list.
      def single(sql)
        @singles.fetch(sql) do
          (name == :sqlite ? sql.gsub(JSON_LIST, "= json_extract(?, '$[0]')") : sql.gsub(LIST) { "= (#{Regexp.last_match(1)})[1]" }).freeze
        end
      end

      # @param type [String] a column's database type, or the type of an array's elements
      # @return [Boolean] whether rows can be ordered by the column
      def orders?(type) = name != :postgres || !UNORDERED.include?(type.delete_suffix("[]"))

      # @param sql [String] a SELECT of one column named castellan_id
      # @return [String] an expression of its values as one comma-separated string, in their order
      def group(sql)
        list = name == :postgres ? "string_agg(castellan_id::text, ',')" : "group_concat(castellan_id)"
        "(SELECT #{list} FROM (#{sql}) castellan_links)"
      end

      # @param sql [String] a SELECT of two integer columns named castellan_parent and castellan_related
      # @return [String, nil] a SELECT of one row with two arrays, in the same order; nil for other databases
      def lists(sql)
        list = { postgres: "array_agg(%s::bigint)", sqlite: "'{' || group_concat(%s) || '}'" }[name] or return
        "SELECT #{format(list, "castellan_parent")}, #{format(list, "castellan_related")} FROM (#{sql}) castellan_links"
      end

      # @param column [String] an integer column
      # @return [String] a condition that excludes NULL and, in SQLite, text, which sorts above every number
      def present(column)
        name == :sqlite ? "#{column} <= #{LARGEST}" : "#{column} IS NOT NULL"
      end

      # @return [String] the ids as one bound value
      def bind(ids) = name == :sqlite ? JSON.generate(ids.to_a) : PostgresDriver.bind(ids)

      SQLITE = new(:sqlite)
      POSTGRES = new(:postgres)
      OTHER = new(:other)
      private_constant :SQLITE, :POSTGRES, :OTHER
    end
  end
end
