# frozen_string_literal: true

require "json"

module Castellan
  module Profile
    # Stores a result's queries compactly: each text and list of frames once, eight cells per query.
    #
    #   table = QueryTable.new(texts: ["select ?"], frames: [["a.rb:1"]], cells: "1000,400,2,false,0,0,0,null")
    #   table.to_a     # => [{ at_ns: 1_000, duration_ns: 400, rows: 2, cached: false, sql: "select ?", … }]
    #   QueryTable.new(**table.to_h).to_a   # => the same
    #
    # `cells` is JSON without its brackets: the values of {Result#queries}, with indexes instead of texts and
    # frames. It is one String because most results are stored and never read, and writing one value is faster
    # than a thousand.
    class QueryTable
      WIDTH = 8 # cells per query

      # @param texts [Array<String>]
      # @param frames [Array<Array<String>>]
      # @param cells [String]
      def initialize(texts:, frames:, cells:)
        @texts = texts
        @frames = frames
        @cells = cells
      end

      # @return [Array<Hash>] see {Result#queries}
      # @raise [JSON::ParserError, IndexError, TypeError] if the table is invalid
      def to_a = JSON.parse("[#{@cells}]").each_slice(WIDTH).map { |cells| query(*cells) }

      # @return [Hash{Symbol => Object}] plain values
      def to_h = { texts: @texts, frames: @frames, cells: @cells }

      private

      def query(at_ns, duration_ns, rows, cached, sql, fingerprint, frames, finding)
        { at_ns: at_ns, duration_ns: duration_ns, rows: rows, cached: cached, sql: @texts.fetch(sql),
          fingerprint: @texts.fetch(fingerprint), frames: @frames.fetch(frames), finding: finding }
      end
    end
  end
end
