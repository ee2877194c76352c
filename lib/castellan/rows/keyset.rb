# frozen_string_literal: true

module Castellan
  module Rows
    # Adds the primary key to an order, and selects the rows before or after a cursor (keyset pagination).
    #
    #   keyset = Keyset.new(definition, adapter, [[:rating, :desc]], scopes)
    #   keyset.order                            # => [[:rating, :desc], [:id, :desc]]
    #   keyset.beyond(["5", "7"], :after)       # => (("posts"."rating", "posts"."id") < ('5', '7'))
    #
    # The primary key comes last, in the direction of the last sort column, so that an index on both (`rating,
    # id`) finds the rows. With mixed directions or nullable columns, the comparison is written with AND and
    # OR; NULL is sorted as the database does.
    class Keyset
      Term = Struct.new(:column, :by, :direction, :nullable)
      OPERATORS = { asc: ">", desc: "<" }.freeze
      OPPOSITE = { asc: :desc, desc: :asc }.freeze
      INFINITE = %w[infinity -infinity Infinity -Infinity].freeze # values of PostgreSQL
      UNUSUAL = { float: [*INFINITE, "NaN"].freeze, date: INFINITE, datetime: INFINITE }.freeze
      UNUSUAL_YEAR = /\A(?:(?<ad>[1-9]\d{4})(?<rest>-.*)|(?<bc>(?!0000)[0-3]\d{3})(?<day>-.*) BC)\z/
      HOURS = /:.*[+-]\d\d\z/ # a PostgreSQL time with a zone
      FAR = /:.*[+-](?:1[6-9]|2\d)(?::?\d\d)?\z/ # a zone that PostgreSQL refuses
      BYTES = { "smallint" => 2, "integer" => 4 }.freeze
      REALS = { "real" => (7.1e-46..3.4028235e38), "double precision" => (5.0e-324..17_976_931_348_623_157 * (10**292)) }.freeze
      private_constant :Term, :OPERATORS, :INFINITE, :UNUSUAL, :UNUSUAL_YEAR, :HOURS, :FAR, :BYTES, :REALS

      # @param sort [Array<(Symbol, Symbol), (Array<Symbol>, Symbol)>] see {Plan::Request#sort}
      def initialize(definition, adapter, sort, scopes)
        @adapter = adapter
        @keys = adapter.scopes.keys || [*definition.id_column]
        direction = sort.empty? ? :asc : sort.last.last
        sort += (@keys - sort.map(&:first)).map { |key| [key, direction] }
        @terms = sort.map do |key, towards|
          by = Resource::ColumnPath.new(key.to_s, Array(key)[0..-2], Array(key).last, nil)
          Term.new(ComparedColumn.new(definition, adapter, by, scopes), by, towards,
                   !@keys.include?(by.key) && (!by.own? || adapter.types.nullable?(by.column)))
        end
      end

      # @return [Array<Symbol>] the primary key's columns
      attr_reader :keys

      # @return [Symbol, Array<Symbol>, nil] the sort column or path whose values a cursor cannot contain
      def uncomparable = @terms.find { |term| stored_kind(term).nil? }&.by&.key

      # @return [Array] terms for {Scopes#order}
      def order(reversed: false)
        @terms.map { |term| [term.by.own? ? term.by.column : term.column, reversed ? OPPOSITE[term.direction] : term.direction] }
      end

      # @return [String] the SELECT list of a cursor's values
      def list = expressions.join(", ")

      # @return [Array<String>] the SQL of each value in a cursor
      def expressions = @terms.map { |term| term.column.sql }

      # @param values [Array] a row that {#list} selected
      # @return [Array] the values of the primary key
      def key_of(values) = @keys.map { |key| values[@terms.index { |term| term.by.own? && term.by.column == key }] }

      # @param values [Array<Object>] a cursor, which the client may have changed
      # @return [Boolean] whether each is a valid value of its column
      def values?(values)
        values.is_a?(Array) && values.size == @terms.size && @terms.zip(values).all? { |term, value| value?(term, value) }
      end

      # @param values [Array] a cursor, see {#values?}, or only its first values;
      #   rows equal in those are on one side
      # @param side [Symbol] :after or :before
      # @param inclusive [Boolean] whether the cursor's own row is selected too
      # @return [String] an SQL condition
      def beyond(values, side, inclusive: false)
        pairs = @terms.first(values.size).zip(values)
        directions = pairs.map { |term, _| side == :after ? term.direction : OPPOSITE[term.direction] }
        return row_comparison(pairs, directions.first, inclusive) if directions.uniq.one? && pairs.none? { |term, _| term.nullable }

        first = @terms.first.nullable ? nil : "#{@terms.first.column.sql} #{OPERATORS[directions.first]}= #{literal(values.first)}"
        "(#{[first, written_out(pairs, directions, inclusive)].compact.join(" AND ")})"
      end

      private

      def row_comparison(pairs, direction, inclusive)
        "((#{pairs.map { |term, _| term.column.sql }.join(", ")}) #{OPERATORS[direction]}#{"=" if inclusive} " \
          "(#{pairs.map { |_, value| literal(value) }.join(", ")}))"
      end

      # a > 1 OR (a = 1 AND (b > 2 OR (b = 2 AND …)))
      def written_out(pairs, directions, inclusive)
        (term, value), *rest = pairs
        further = further(term, value, directions.first)
        equal = value.nil? ? "#{term.column.sql} IS NULL" : "#{term.column.sql} = #{literal(value)}"
        return "(#{inclusive ? "#{further} OR #{equal}" : further})" if rest.empty?

        "(#{further} OR (#{equal} AND #{written_out(rest, directions.drop(1), inclusive)}))"
      end

      def further(term, value, direction)
        nulls_last = (direction == :asc) == (@adapter.dialect.name == :postgres)
        return nulls_last ? "1 = 0" : "#{term.column.sql} IS NOT NULL" if value.nil?

        compared = "#{term.column.sql} #{OPERATORS[direction]} #{literal(value)}"
        nulls_last && term.nullable ? "#{compared} OR #{term.column.sql} IS NULL" : compared
      end

      def literal(value) = @adapter.types.literal(value)

      def stored_kind(term)
        kind = @adapter.at(term.by.path).types.kind(term.by.column)
        kind == :decimal ? :float : kind
      end

      # PostgreSQL returns strings and rejects invalid values of a type; SQLite
      # returns its own types and compares any.
      def value?(term, value)
        return term.nullable if value.nil?
        return false unless value.is_a?(String) || value.is_a?(Integer) || (value.is_a?(Float) && value.finite?)
        return false if value.is_a?(Integer) && value.bit_length > 63
        return false if value.is_a?(String) && (value.include?("\0") || !value.valid_encoding?)
        return true unless @adapter.dialect.name == :postgres

        kind = stored_kind(term)
        return %i[integer float].include?(kind) unless value.is_a?(String)
        return true if UNUSUAL[kind]&.include?(value)
        return %w[t f].include?(value) if kind == :boolean

        ComparedColumn.value?(kind, usual(kind, value)) && fits?(term, kind, value)
      end

      # @return [Boolean] false for a value that PostgreSQL refuses as one of the column's type
      def fits?(term, kind, value)
        return !FAR.match?(value) if kind == :datetime
        return true unless %i[integer float].include?(kind)

        type = @adapter.at(term.by.path).types.database_type(term.by.column)
        return value.to_i.bit_length < 8 * BYTES.fetch(type, 8) if kind == :integer

        number = BigDecimal(value).abs
        number.zero? || REALS[type].nil? || REALS[type].cover?(number)
      end

      def usual(kind, value)
        value = usual_year(value) if %i[date datetime].include?(kind)
        HOURS.match?(value) ? "#{value}:00" : value
      end

      # PostgreSQL writes years before Christ and after 9999, which clients cannot filter by.
      # @return [String] the same day of a year that {ComparedColumn} reads
      def usual_year(value)
        value.sub(UNUSUAL_YEAR) do
          year = $~[:ad] ? $~[:ad].to_i : 1 - $~[:bc].to_i
          "#{Date.gregorian_leap?(year) ? 2000 : 2001}#{$~[:ad] ? $~[:rest] : $~[:day]}"
        end
      end
    end
  end
end
