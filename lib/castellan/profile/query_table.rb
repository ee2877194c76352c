# frozen_string_literal: true

require "json"

module Castellan
  module Profile
    # The queries of a result as they are kept: each text and each list of frames once, and eight cells for a query, which takes a store
    # less room and less time than a hash for each.
    #
    #   table = QueryTable.new(texts: ["select ?"], frames: [["a.rb:1:in `x'"]], cells: "1000,400,2,false,0,0,0,null")
    #   table.to_a     # => [{ at_ns: 1_000, duration_ns: 400, rows: 2, cached: false, sql: "select ?", fingerprint: "select ?", … }]
    #   QueryTable.new(**table.to_h).to_a   # => the same
    #
    # `cells` are those of one query after the other, as JSON has them between brackets: what {Result#queries} says of it, with places
    # instead of texts and frames. A text, because most results are kept and never read, and to write one value costs less than a thousand.
    class QueryTable
      WIDTH = 8 # cells of a query

      # @param texts [Array<String>]
      # @param frames [Array<Array<String>>]
      # @param cells [String]
      def initialize(texts:, frames:, cells:)
        @texts = texts
        @frames = frames
        @cells = cells
      end

      # @return [Array<Hash>] see {Result#queries}
      # @raise [JSON::ParserError, IndexError, TypeError] when it is none
      def to_a = JSON.parse("[#{@cells}]").each_slice(WIDTH).map { |cells| query(*cells) }

      # @return [Hash] of plain values
      def to_h = { texts: @texts, frames: @frames, cells: @cells }

      private

      def query(at_ns, duration_ns, rows, cached, sql, fingerprint, frames, finding)
        { at_ns: at_ns, duration_ns: duration_ns, rows: rows, cached: cached, sql: @texts.fetch(sql),
          fingerprint: @texts.fetch(fingerprint), frames: @frames.fetch(frames), finding: finding }
      end
    end
  end
end
