# frozen_string_literal: true

module Castellan
  module Rows
    # Reads the rows of a to-one association for many owners in one SELECT: for each owner the row that a lazy read
    # returns. PostgreSQL only.
    #
    #   first = FirstRows.of(adapter.association(:last_login))
    #   first.key                                  # => "tokens"."user_id"
    #   first.sql("#{first.key} AS castellan_k")   # => SELECT DISTINCT ON ("tokens"."user_id") … ORDER BY "tokens"."user_id", …
    #
    # Among rows that the association's order does not tell apart, the first in the table is read, as a lazy
    # read does where no index has this order. Where one has, a subquery for each owner is one look-up, and
    # stays one however many rows an owner has.
    class FirstRows
      COLUMN = /\A(?<table>(?:"[^"]+"\.)*"(?<name>[^"]+)")\."(?<column>[^"]+)"\z/
      ORDER = / ORDER BY (.+) LIMIT 1\z/m
      private_constant :COLUMN, :ORDER

      # @param association [Object] a to-one association of an adapter
      # @return [FirstRows, nil] nil if it can or should only be read owner by owner
      def self.of(association)
        first = new(association) if association.reason.nil? && association.lazy.first_of_many?
        first if first&.possible?
      end

      # @return [String] the column that is compared with the owner's key
      attr_reader :key

      def initialize(association)
        @lazy = association.lazy
        @adapter = association.adapter
        statement = @lazy.sql("1", single: true)
        @key = OwnerKey.column(statement)
        @place = COLUMN.match(@key.to_s)
        @order = statement[ORDER, 1]
        @unique = !@place.nil? && own_table? && !@lazy.joins? && @adapter.types.unique?(@place[:column])
        freeze
      end

      # @return [Boolean]
      def possible?
        !@place.nil? && (unique? || (table? && !index_in_order?))
      end

      # @return [Boolean] whether an owner has at most one row, so that nothing must be chosen
      def unique?
        @unique
      end

      # @param list [String] the SELECT list
      # @param owners [String, nil] SELECT of the owners' keys; nil reads the rows of all owners
      # @return [String]
      def sql(list, owners = nil)
        text = unique? ? @lazy.rows_sql(list) : @lazy.first_rows_sql(key, list, places)
        OwnerKey.replace_comparison(text) { owners && !unique? ? "#{key} IN (#{owners})" : "TRUE" }
      end

      private

      def own_table?
        @place[:name] == own_name
      end

      def own_name
        @adapter.table.to_s.split(".").last
      end

      # Only tables have a place: no views, and no aliases.
      def table?
        [@place[:name], own_name].all? { |name| @adapter.types.tables.include?(name) }
      end

      # With `through`, the joined table has the key.
      def places
        [@place[:table], *(@adapter.types.table unless own_table?)].map { |table| "#{table}.ctid" }.join(", ")
      end

      def index_in_order?
        return false unless @order && own_table?

        first = @order.split(",").first
        @adapter.types.indexes_from(@place[:column]).any? { |others| others.any? { |column| first.match?(/\b#{Regexp.escape(column)}\b/) } }
      end
    end
  end
end
