# frozen_string_literal: true

module Castellan
  class Document
    # Collects the ids of the records that a stream will include, in order, in a few bytes each.
    #
    #   ids = IncludedIds.new(plan, 100_000)
    #   ids.add([1, "7", 2, "3"], rows)         # node and id in turns; the rows of the primary data
    #   ids.each_slice(1_000) { |records| … }   # [[1, "7"], [2, "3"]]
    #
    # Each record is collected once; nodes of one type share their records. Primary
    # records are never included, so if related records may be of the primary type, the
    # ids of the primary data are collected too.
    class IncludedIds
      PRIMARY = -1
      # Such an id is stored as an Integer, which needs no object.
      NUMBER = /\A(?:0|[1-9]\d{0,14})\z/
      private_constant :PRIMARY, :NUMBER

      # @param plan [Plan::FetchPlan]
      # @param most [Integer] the number of ids above which {TooManyIncluded} is raised
      def initialize(plan, most)
        @most = most
        types = plan.nodes.map { |node| node.definition.type.to_s }
        @families = types.map { |type| types.index(type) }
        @count = types.size
        @recursive = @families.drop(1).include?(0)
        @met = {}
        @primary = 0
      end

      # @param found [Array] positions of nodes and ids in turns
      # @param rows [Array<Array>, PG::Result] primary data with the id in the first column
      # @raise [TooManyIncluded]
      def add(found, rows)
        found.each_slice(2) do |index, id|
          key = key(@families[index], id)
          @met[key] = index unless @met.key?(key)
        end
        primary(rows) if @recursive
        raise TooManyIncluded.new(size, @most) if size > @most
      end

      # @return [Integer] the number of included records
      def size
        @met.size - @primary
      end

      # @yieldparam records [Array<Array(Integer, String)>] the position of the node, and the id
      def each_slice(number)
        @met.each_slice(number) do |some|
          records = some.filter_map { |key, index| [index, id_of(key)] unless index == PRIMARY }
          yield records unless records.empty?
        end
      end

      private

      def primary(rows)
        (rows.is_a?(Array) ? rows.map(&:first) : rows.column_values(0)).each do |id|
          key = key(0, id.to_s)
          @primary += 1 unless @met[key] == PRIMARY
          @met[key] = PRIMARY
        end
      end

      def key(family, id)
        NUMBER.match?(id) ? (id.to_i * @count) + family : "#{family}/#{id}"
      end

      def id_of(key)
        key.is_a?(Integer) ? (key / @count).to_s : key.partition("/").last
      end
    end
  end
end
