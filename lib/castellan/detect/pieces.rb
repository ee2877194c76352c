# frozen_string_literal: true

module Castellan
  module Detect
    # What changes from one statement of a group to the next: the values that its columns must equal, the bounds of its
    # ranges, the lengths of its lists. So a set that is fetched piece by piece is told from one that is asked for record by
    # record, and the owner that is another each time from the one that is asked for something else each time.
    #
    #   pieces = Pieces.new
    #   pieces.add("SELECT * FROM posts WHERE user_id = ? AND title = ?", [1, "a"])
    #   pieces.add("SELECT * FROM posts WHERE user_id = ? AND title = ?", [1, "b"])
    #   pieces.varying   # => ["title"]
    #
    # Told only of the first statements of a group, and only where a look at its shape does not settle the matter; the first is
    # read when there is a second, so a statement that does not repeat costs nothing. Reads the text with expressions and not
    # with a parser: a condition that it does not see counts as one that stays the same. Values are forgotten with the recording.
    class Pieces
      NAME = /["`\[]?(\w+)["`\]]?/
      VALUE = /\?\d*|\$\d+|'(?:[^']|'')*'|-?\d[\d.]*|true\b|false\b/i
      CONDITION = /(?:#{NAME}\s*\.\s*)?#{NAME}\s*(=|>=?|<=?|\bbetween\b)\s*\(?(#{VALUE})/i
      # (placed_on, id) > ('2026-01-31', 7)
      ROW = /\(((?:\s*#{NAME}\s*\.)?\s*#{NAME}\s*(?:,[^()]*)?)\)\s*(>=?|<=?)\s*\(([^()]*)\)/
      # What an UPDATE sets is no condition.
      SET = %r{\A(?:\s|/\*.*?\*/)*update\b.*?\bset\b.*?\bwhere\b}im
      LIMIT = /\blimit\s+(#{VALUE})/i
      LIST = /\b(?:in|any)\s*\(\s*(?!select\b)([^()]*)\)/i

      MOST = 12
      # A list of fewer may be one record's.
      SHORT = 5

      # @return [Array<String>] columns that must equal another value each time, or one of several
      attr_reader :varying

      def initialize
        @varying = []
        @widths = []
        @short = []
        @steady = true
        @ones = true
        @read = 0
      end

      # @param sql [String]
      # @param binds [Array, nil]
      # @return [void]
      def add(sql, binds)
        return if @read >= MOST

        sql = sql.b unless sql.valid_encoding?
        return keep(sql, binds) unless @sql

        read(@sql, @binds) if @read.zero?
        read(sql, binds)
      end

      # @return [Boolean] whether short lists have values in common, which slices of a set have not
      def shared? = @short.uniq.size < @short.size

      # @return [Boolean] whether there are lists of several values that have none in common
      def apart? = !shared? && @widths.any? { |width| width > 1 }

      # @return [Boolean] whether no list is longer than the one before
      def narrowing? = @widths.each_cons(2).all? { |before, width| width <= before }

      # @return [Pieces] what is known of these statements and those of another thread
      def merge(other) = dup.tap { |pieces| pieces.take(other) }

      # @return [Boolean] whether one condition stays the same and another does not: then the statement is not asked for
      #   another value of each column
      def varies?(columns) = columns.any? { |column| @varying.include?(column) }

      # @param shape [Shape]
      # @param siblings [Array<Integer>] how many records were loaded together, for each such load
      # @param count [Integer] how many statements there were
      # @return [Boolean] whether they fetched one large set, a piece each
      def batch?(shape, siblings, count)
        return false unless shape.batch? && @varying.empty?
        return true if shape.paged? && @steady && !(@ones && siblings.include?(count)) # the one that comes next, of each

        (shape.listed? ? slices? : @steady) && !siblings.include?(count)
      end

      protected

      attr_reader :sql, :binds, :widths, :short, :steady, :ones

      def take(other)
        @varying |= other.varying
        @widths += other.widths
        @short += other.short
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

      # Slices have one length, but for the last.
      def slices?
        first = @widths.first.to_i
        first > 1 && @widths[0..-2].all?(first) && @widths.last <= first
      end

      def list(sql, binds)
        list = sql[LIST, 1]
        offset = sql.index(LIST) + sql[LIST].rindex(list)
        list = value(list.strip, sql, binds, offset).to_s if list.strip.match?(/\A\$\d+\z/) # an array of PostgreSQL's is one value
        width = list.count(",") + 1
        @widths += [width]
        @short += values(list, sql, binds, offset) if width < SHORT
      end

      def values(list, sql, binds, offset)
        list.to_enum(:scan, VALUE).map { value(Regexp.last_match[0], sql, binds, offset + Regexp.last_match.begin(0)) }
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
        sql.include?(",") ? found + rows(sql, binds) : found
      end

      # Two rows are compared value by value, the first that differs decides.
      def rows(sql, binds)
        found = []
        sql.scan(ROW) do
          match = Regexp.last_match
          found << [match[1].downcase, match[4], values(match[5], sql, binds, match.begin(5))]
        end
        found
      end

      def value(literal, sql, binds, offset)
        case literal[0]
        when "$" then binds && binds[Integer(literal[1..]) - 1]
        when "?" then binds && binds[sql[0, offset].count("?")]
        else literal.match?(/\A-?\d+\z/) ? Integer(literal, 10) : literal
        end
      end

      # A composite key is paged by ranges of one column and equal values of it.
      def compare(conditions)
        ranged = conditions.filter_map { |column, operator, _value| column unless operator == "=" }
        conditions.zip(@before) do |(column, operator, value), (_column, _operator, before)|
          next if value == before

          operator == "=" ? @varying |= [column] - ranged : step(value, before, column)
        end
      end

      # Who fetches a set by its keys goes through them in one direction, and through another set from its beginning.
      def step(value, before, column)
        direction = value <=> before
        @direction ||= direction
        first = (@first ||= {})[column] ||= before
        @steady = false if direction.nil? || (direction != @direction && (value <=> first) != 0)
      end
    end
  end
end
