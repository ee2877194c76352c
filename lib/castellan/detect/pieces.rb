# frozen_string_literal: true

module Castellan
  module Detect
    # Compares the values of a group's statements to tell batch reads from a query per record.
    #
    #   pieces = Pieces.new
    #   pieces.add("SELECT * FROM posts WHERE user_id = ? AND title = ?", [1, "a"])
    #   pieces.add("SELECT * FROM posts WHERE user_id = ? AND title = ?", [1, "b"])
    #   pieces.varying   # => ["title"]
    #
    # Reads the first {MOST} statements of a group, but the first one only when a second follows, so that
    # statements that do not repeat cost nothing. Reads SQL with regular expressions; a condition that they
    # miss counts as constant.
    class Pieces
      NAME = /["`\[]?(\w+)["`\]]?/
      VALUE = /\?\d*|\$\d+|'(?:[^']|'')*'|-?\d[\d.]*|true\b|false\b/i
      CONDITION = /(?:#{NAME}\s*\.\s*)?#{NAME}\s*(=|>=?|<=?|\bbetween\b)\s*\(?(#{VALUE})/i
      # The SET clause of an UPDATE has assignments, not conditions.
      SET = %r{\A(?:\s|/\*.*?\*/)*update\b.*?\bset\b.*?\bwhere\b}im
      LIMIT = /\blimit\s+(#{VALUE})/i
      LIST = /\b(?:in|any)\s*\(\s*(?!select\b)([^()]*)\)/i

      MOST = 12

      # @return [Array<String>] the columns whose compared value changes
      attr_reader :varying

      def initialize
        @varying = []
        @widths = []
        @steady = true
        @ones = true
        @read = 0
      end

      # @param binds [Array, nil] the values of the placeholders
      def add(sql, binds)
        return if @read >= MOST

        sql = sql.b unless sql.valid_encoding?
        return keep(sql, binds) unless @sql

        read(@sql, @binds) if @read.zero?
        read(sql, binds)
      end

      def merge(other) = dup.tap { |pieces| pieces.take(other) }

      def varies?(columns) = columns.any? { |column| @varying.include?(column) }

      # @return [Object, nil] the value that the last statement compares with the column by =; nil unless all have the same
      def steady_value(column)
        @before&.find { |name, operator, _value| name == column && operator == "=" }&.last unless varies?([column])
      end

      # @param siblings [Array<Integer>] how many records each load returned
      # @param count [Integer] the number of statements
      # @return [Boolean] whether the statements read one large set in batches
      def batch?(shape, siblings, count)
        return false unless shape.batch? && @varying.empty?
        return true if shape.paged? && @steady && !(@ones && siblings.include?(count)) # not the next row of each record

        (shape.listed? ? slices? : @steady) && !siblings.include?(count)
      end

      protected

      attr_reader :sql, :binds, :widths, :steady, :ones

      def take(other)
        @varying |= other.varying
        @widths += other.widths
        @steady &&= other.steady
        @ones &&= other.ones
        add(other.sql, other.binds) if other.sql
      end

      private

      def keep(sql, binds)
        @sql = sql
        @binds = binds
      end

      def read(sql, binds)
        @read += 1
        list(sql, binds) if sql.match?(LIST)
        @ones &&= limit(sql, binds) == 1
        conditions = conditions(sql, binds)
        compare(conditions) if @before
        @before = conditions
      end

      # Batches have the same length, except the last.
      def slices?
        first = @widths.first.to_i
        first > 1 && @widths[0..-2].all?(first) && @widths.last <= first
      end

      def list(sql, binds)
        list = sql[LIST, 1]
        offset = sql.index(LIST) + sql[LIST].rindex(list)
        list = value(list.strip, sql, binds, offset).to_s if list.strip.match?(/\A\$\d+\z/) # an array as bind value
        @widths += [list.count(",") + 1]
      end

      def limit(sql, binds)
        literal = sql[LIMIT, 1]
        literal && value(literal, sql, binds, sql.index(LIMIT) + sql[LIMIT].rindex(literal))
      end

      def conditions(sql, binds)
        found = []
        set = sql[SET].to_s.length
        sql.scan(CONDITION) do |_table, column, operator, literal|
          match = Regexp.last_match
          found << [column.downcase, operator, value(literal, sql, binds, match.begin(4))] if match.begin(0) >= set
        end
        found
      end

      def value(literal, sql, binds, offset)
        case literal[0]
        when "$" then binds && binds[Integer(literal[1..]) - 1]
        when "?" then binds && binds[sql[0, offset].count("?")]
        else literal.match?(/\A-?\d+\z/) ? Integer(literal, 10) : literal.delete_prefix("'").delete_suffix("'")
        end
      end

      # Batches over a composite key compare the same column by range and by equality.
      def compare(conditions)
        ranged = conditions.filter_map { |column, operator, _value| column unless operator == "=" }
        conditions.zip(@before) do |(column, operator, value), (_column, _operator, before)|
          next if value == before

          operator == "=" ? @varying |= [column] - ranged : step(value, before, column)
        end
      end

      # Batch reads move through the keys in one direction; a jump back to the first key starts a new batch
      # read.
      def step(value, before, column)
        direction = value <=> before
        @direction ||= direction
        first = (@first ||= {})[column] ||= before
        @steady = false if direction.nil? || (direction != @direction && (value <=> first) != 0)
      end
    end
  end
end
