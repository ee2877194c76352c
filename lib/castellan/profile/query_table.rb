# frozen_string_literal: true

module Castellan
  module Profile
    # Packs the queries of a result for a store: each text and each list of frames once.
    #
    #   table = QueryTable.pack(result.queries)   # => { shared: ["select ?", ["a.rb:1"]], rows: [[1_000, 400, 2, …]] }
    #   QueryTable.unpack(table)                  # => the queries
    module QueryTable
      SHARED = %i[sql fingerprint frames].freeze
      KEYS = [*SHARED, :at_ns, :duration_ns, :rows, :cached, :finding].freeze
      private_constant :SHARED, :KEYS

      module_function

      # @param queries [Array<Hash>] see {Result#queries}
      # @return [Hash]
      def pack(queries)
        places = Hash.new { |known, value| known[value] = known.size }
        rows = queries.map { |query| KEYS.map { |key| SHARED.include?(key) ? places[query[key]] : query[key] } }
        { shared: places.keys, rows: rows }
      end

      # @param table [Hash]
      # @return [Array<Hash>]
      # @raise [IndexError, TypeError] if the table is invalid
      def unpack(table)
        shared, rows = table.fetch_values(:shared, :rows)
        rows.map { |row| KEYS.zip(row).to_h { |key, value| [key, SHARED.include?(key) ? shared.fetch(value) : value] } }
      end
    end
  end
end
