# frozen_string_literal: true

require "json"

begin
  require "castellan/castellan_ext"
rescue LoadError
  nil # JSON.parse reads the ids instead
end

module Castellan
  module Rows
    # Holds ids as the text of a PostgreSQL array, built in C without a Ruby object for each id.
    # Has the methods of Array that drivers call on a list of ids.
    #
    #   list = IdList.of(result)   # => #<IdList {1,2,3}>
    #   list.size                  # => 3
    #   IdList.distinct("{3,1,3}") # => [3, 1]
    #   IdList.in_column([[7, "3,1"], [8, nil], [9, "3"]], 1)   # => [3, 1]
    class IdList
      include Enumerable

      # @param rows [Array<Array>, PG::Result] rows with an integer in the first column
      # @return [IdList, nil] nil for arrays, for an empty result, and without the C extension
      def self.of(rows)
        return unless defined?(Native) && !rows.is_a?(Array) && rows.ntuples.positive?

        text = Native.id_list(rows)
        text && new(text, rows.ntuples)
      end

      # @param rows [Array<Array>] rows whose column holds comma-separated integers, or nil
      # @return [Array<Integer>] see {distinct}
      def self.in_column(rows, position)
        (defined?(Native) && Native.column_ids(rows, position)) || distinct(ColumnValues.ids(rows, position))
      end

      # @param texts [String, Array<String>, nil] comma-separated integers, with or without braces
      # @return [Array<Integer>] without duplicates, in order of first appearance
      def self.distinct(texts)
        texts = [texts].compact unless texts.is_a?(Array)
        (defined?(Native) && Native.distinct_ids(texts)) || parsed(texts.uniq.map { |text| text.delete("{}") }.reject(&:empty?).join(","))
      end

      # JSON.parse is used because `split` would allocate a string for each id.
      def self.parsed(text)
        JSON.parse("[#{text}]").uniq
      rescue JSON::ParserError # text in an integer column, which SQLite allows
        text.split(",").map(&:to_i).uniq
      end
      private_class_method :parsed

      # @return [String]
      # @return [Integer]
      attr_reader :to_s, :size

      def initialize(text, size)
        @to_s = text.freeze
        @size = size
        freeze
      end

      # @return [Boolean]
      def empty?
        size.zero?
      end

      # @return [Integer]
      def first
        to_s[1..].to_i
      end

      # @yieldparam id [Integer]
      def each(&block)
        JSON.parse(to_s.tr("{}", "[]")).each(&block)
      end
    end
  end
end
