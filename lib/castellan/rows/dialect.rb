# frozen_string_literal: true

require "json"

module Castellan
  module Rows
    # How one database takes a list of ids and groups the links of a row. Frozen.
    #
    #   Dialect.for(:postgres).among(%("comments"."post_id"), "bigint")  # => %("comments"."post_id" = ANY($1::bigint[]))
    #   Dialect.for(:sqlite).among(%("comments"."post_id"), "integer")   # => %("comments"."post_id" IN (SELECT value FROM json_each(?)))
    #
    # Both take all ids as one value, so that a statement's text is the same for any number of parents.
    # Where a database has neither, the ids are written into the text.
    class Dialect
      # Stands for the ids in the text of {Other}.
      IDS = "castellan_ids"
      LIST = /= ANY\((\$1::[^()]+)\)/
      JSON_LIST = "IN (SELECT value FROM json_each(?))"
      # PostgreSQL takes these for one character and one bit where no length is written.
      OF_ANY_LENGTH = { "character" => "bpchar", "bit" => "varbit" }.freeze
      private_constant :LIST, :JSON_LIST, :OF_ANY_LENGTH

      # @param name [Symbol] :sqlite, :postgres, or any other
      # @return [Dialect]
      def self.for(name)
        { sqlite: SQLITE, postgres: POSTGRES }.fetch(name, OTHER)
      end

      # @param type [String] of a column in the database
      # @return [String] a type that holds all of the column's values, without a length
      def self.without_length(type)
        bare = type.sub(/\(.*\)/, "")
        OF_ANY_LENGTH.fetch(bare, bare)
      end

      # @return [Symbol]
      attr_reader :name

      def initialize(name)
        @name = name
        freeze
      end

      # @param type [String] the column's type in the database
      # @return [String]
      def among(expression, type)
        case name
        when :postgres then "#{expression} = ANY($1::#{type}[])"
        when :sqlite then "#{expression} #{JSON_LIST}"
        else "#{expression} IN (#{IDS})"
        end
      end

      # @param sql [String] with a comparison of {#among}
      # @return [String] the same for a list of one id: PostgreSQL plans this once, where it weighs a short list anew in each request,
      #   which takes longer than finding the row; SQLite needs no table of the list
      def single(sql)
        case name
        when :postgres then sql.gsub(LIST) { "= (#{Regexp.last_match(1)})[1]" }
        when :sqlite then sql.gsub(JSON_LIST, "= json_extract(?, '$[0]')")
        else sql
        end
      end

      # @return [Boolean] whether the links of a row are cheapest as one value of the row itself
      def groups_links?
        name == :sqlite
      end

      # @return [Boolean] whether a join is cheaper than a subquery for each row
      def joins_paths?
        name == :postgres
      end

      # @return [Boolean] whether a statement can run once for each of many parents inside one statement
      def lateral?
        name == :postgres
      end

      # @param sql [String] SELECT of one column named castellan_id
      # @return [String] its values in one text, with commas between them, in their order
      def group(sql)
        "(SELECT group_concat(castellan_id) FROM (#{sql}))"
      end

      # @param sql [String] SELECT of two columns of integers, named castellan_parent and castellan_related
      # @return [String, nil] the same as one row of two arrays, in the order of the rows
      def lists(sql)
        return unless name == :postgres

        "SELECT array_agg(castellan_parent::bigint), array_agg(castellan_related::bigint) FROM (#{sql}) castellan_links"
      end

      # @param ids [Array<Integer, String>, IdList]
      # @return [String] the one value that carries them
      def bind(ids)
        name == :sqlite ? JSON.generate(ids.to_a) : PostgresDriver.bind(ids)
      end

      SQLITE = new(:sqlite)
      POSTGRES = new(:postgres)
      OTHER = new(:other)
      private_constant :SQLITE, :POSTGRES, :OTHER
    end
  end
end
