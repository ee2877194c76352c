# frozen_string_literal: true

require "json"

module Castellan
  module Rows
    # Parses the ids that clients send, and writes those of records.
    #
    #   Ids.integers(["7", "7abc", 8, "99999999999999999999"])   # => [7, 8]
    #   Ids.of(instances, [seat], %i[row_id number])             # => ["4_12"]
    #   Ids.of(instances, [trip], [:left_at])                    # => ["2024-02-01 10:00:00.25 UTC"]
    #
    # A composite key is one id, joined like in a Rails path. Times include their fraction,
    # because two records may share a second.
    module Ids
      DELIMITER = "_"
      CLOCK = /\d\d:\d\d:\d\d/
      CLOCK_ALONE = /#{CLOCK}(?!\.)/
      LARGEST = (2**63) - 1
      UUID = /\A\h{8}-\h{4}-\h{4}-\h{4}-\h{12}\z/
      LARGEST_OF = { "bigint" => LARGEST, "integer" => (2**31) - 1, "smallint" => (2**15) - 1 }.freeze
      private_constant :CLOCK, :CLOCK_ALONE, :LARGEST, :LARGEST_OF

      module_function

      # @param id [Object] an id that the client sent
      # @return [Object, nil] nil for strings that no database accepts: with an invalid encoding or a NUL
      def text(id) = id.is_a?(String) ? ClientText.utf8(id) : id

      # Drops ids that are not integers: the database would reject them, and
      # `to_i` would keep their leading digits.
      def integers(ids)
        ids.filter_map do |id|
          number = id.is_a?(Integer) ? id : (id.to_i if id.to_s.match?(/\A-?\d+\z/))
          number if number && number.abs <= LARGEST
        end
      end

      # @param type [String] a PostgreSQL type
      # @return [Boolean] whether PostgreSQL certainly reads all ids as values of that type
      def of_type?(ids, type)
        return ids.all? { |id| id.is_a?(String) && UUID.match?(id) } if type == "uuid"

        largest = LARGEST_OF[type]
        !largest.nil? && ids.all? { |id| id.is_a?(Integer) && id.abs <= largest }
      end

      # @return [Array<Object>] one id per record, nil if it has none
      def of(instances, records, column)
        unless column.is_a?(Array)
          rows, coders = instances.rows(records, [column])
          return rows.flatten(1) if coders == [:integer]

          return instances.read(records, column).map { |id| id.respond_to?(:strftime) ? written(id) : id }
        end

        column.map { |name| instances.read(records, name) }.transpose.map { |parts| joined(parts) }
      end

      # @param parts [Array<Object>] the values of a record's key columns
      # @return [String, nil] nil if all of them are nil
      def joined(parts)
        parts.map { |part| written(part) }.join(DELIMITER) unless parts.all?(&:nil?)
      end

      # @return [String] the same string with and without ActiveSupport
      def written(value)
        return value.to_s("F") if defined?(::BigDecimal) && value.is_a?(::BigDecimal)
        return value.to_s unless value.respond_to?(:strftime)

        value.to_s.sub(CLOCK_ALONE) { |clock| clock + value.strftime(".%9N").sub(/\.?0+\z/, "") }
      end

      # @param ids [Array<String>] joined ids
      # @param types [Object] see {Adapter#types}
      # @return [Array<Array>] the columns' values for each valid id
      def divided(ids, columns, types)
        readings = columns.map { |column| reading(column, types) }
        ids.filter_map do |id|
          parts = columns.one? ? [written(id)] : id.to_s.split(DELIMITER, -1)
          next unless parts.size == columns.size

          values = readings.zip(parts).flat_map { |reading, part| reading.call(part) }
          values if values.size == columns.size
        end
      end

      # @return [#call] returns the value of a part of an id in an array, or an
      #   empty array if the part is invalid
      def reading(column, types)
        return ->(part) { integers([part]) } if types.integer?(column)
        return ->(part) { [part] } if types.identifies?(column)

        ->(part) { written_so(types.typecast(column, part), part) }
      end

      # A value matches only if it has the id's string: an enum's number
      # does not match, nor does 2.50 match 2.5.
      def written_so(value, part)
        return [] if value.nil?

        written(value) == part || same_moment?(value, part) ? [value] : []
      end

      # A time matches whatever its time zone.
      def same_moment?(value, part) = value.respond_to?(:utc) && part.match?(CLOCK)
      private_class_method :reading, :written_so, :same_moment?

      # Selects rows of a model by their id column with constant SQL, without building a relation.
      #
      #   chosen = Ids::Chosen.new(User.all, [7, 8], :id, ->(scope, ids) { scope.where(id: ids) })
      #   chosen.ids        # => [7, 8]
      #   chosen.relation   # => User.where(id: [7, 8])
      # Only for scopes without conditions, order and limit.
      Chosen = Struct.new(:scope, :ids, :column, :narrow) do
        # @return [Object] the relation or dataset narrowed to the ids
        def relation = @relation ||= narrow.call(scope, ids)
      end

      # Holds ids as the text of a PostgreSQL array, built in C without a Ruby object for each id.
      #
      #   list = Ids::List.of(result)   # => #<Ids::List {1,2,3}>
      #   list.size                  # => 3
      #   Ids::List.distinct("{3,1,3}") # => [3, 1]
      #   Ids::List.in_column([[7, "3,1"], [8, nil], [9, "3"]], 1)   # => [3, 1]
      #
      # Implements the Array methods that drivers call on a list of ids.
      class List
        include Enumerable

        # @param rows [Array<Array>, PG::Result] rows with an integer in the first column
        # @return [Ids::List, nil] nil for arrays, for an empty result, and without the C extension
        def self.of(rows)
          return unless defined?(Native) && !rows.is_a?(Array) && rows.ntuples.positive?

          text = Native.id_list(rows)
          text && new(text, rows.ntuples)
        end

        # @param rows [Array<Array>] rows whose column contains comma-separated integers, or nil
        # @return [Array<Integer>] see {.distinct}
        def self.in_column(rows, position)
          (defined?(Native) && Native.column_ids(rows, position)) || distinct(ColumnValues.ids(rows, position))
        end

        # @param texts [String, Array<String>, nil] comma-separated integers, with or without braces
        # @return [Array<Integer>] without duplicates, in order of first appearance
        def self.distinct(texts)
          texts = [texts].compact unless texts.is_a?(Array)
          (defined?(Native) && Native.distinct_ids(texts)) || parsed(texts.uniq.map { |text| text.delete("{}") }.reject(&:empty?).join(","))
        end

        # Uses JSON.parse, because `split` would allocate a string for each id.
        def self.parsed(text)
          JSON.parse("[#{text}]").uniq
        rescue JSON::ParserError # SQLite allows text in an integer column
          text.split(",").map(&:to_i).uniq
        end
        private_class_method :parsed

        # @return [String] a PostgreSQL array literal
        # @return [Integer]
        attr_reader :to_s, :size

        def initialize(text, size)
          @to_s = text.freeze
          @size = size
          freeze
        end

        def empty? = size.zero?
        def first = to_s[1..].to_i
        def each(&block) = JSON.parse(to_s.tr("{}", "[]")).each(&block)
      end
    end
  end
end
